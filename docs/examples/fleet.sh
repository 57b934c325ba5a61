#!/bin/sh
# A fleet on one host: two agents, and a run that they do. On hosts of their own the
# agents join with the URL that weir fleet token prints. A scenario with a password
# needs agents that allow it: weir agent --join URL --allow-env BROKER_PASSWORD.
join=weir://127.0.0.1:17622
weir agent --join $join --name a --label side=send &
a=$!
weir agent --join $join --name b --label side=receive &
b=$!
weir run --fleet 2 --listen 127.0.0.1:17622 --producers 4 --consumers 4 \
  --placement '{producers: [side=send], consumers: [side=receive]}' "$@"
code=$?
kill $a $b
wait
exit $code
