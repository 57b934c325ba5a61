package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// HoldRabbit suspends the process of a RabbitMQ queue (a leader, if there are several) on one of
// the nodes with these processes, until resume is called: messages for that queue are not
// confirmed, while the server serves all others.
func HoldRabbit(pids []int, queue string) (resume func(), err error) {
	if err := evaluate(pids, "suspend", queue); err != nil {
		return nil, err
	}
	return func() { _ = evaluate(pids, "resume", queue) }, nil
}

// evaluate calls a function of Erlang's sys module for a queue's process.
func evaluate(pids []int, function, queue string) error {
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			return err
		}
		env := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		of := map[string]string{}
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			of[name] = value
		}
		if of["RABBITMQ_NODENAME"] == "" {
			continue
		}
		cookie, err := os.ReadFile(filepath.Join(of["HOME"], ".erlang.cookie"))
		if err != nil {
			return err
		}
		call := exec.Command(filepath.Join(of["BINDIR"], "erl_call"), "-sname", of["RABBITMQ_NODENAME"], "-c", strings.TrimSpace(string(cookie)), "-e")
		call.Env = env
		call.Stdin = strings.NewReader(fmt.Sprintf(
			`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), sys:%s(amqqueue:get_pid(Q)).
`, queue, function))
		if out, err := call.CombinedOutput(); err != nil || !strings.Contains(string(out), "{ok, ok}") {
			return fmt.Errorf("%s of queue %s: %w: %s", function, queue, err, out)
		}
		return nil
	}
	return fmt.Errorf("none of the processes %v is a RabbitMQ", pids)
}
