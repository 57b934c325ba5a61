package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/httpapi"
	"github.com/weirmq/weir/drivers/internal/rabbitserver"
	"github.com/weirmq/weir/drivers/internal/retry"
)

// management is the HTTP interface of the vendor's plugin
// (https://www.rabbitmq.com/docs/management#http-api).
type management struct {
	*httpapi.Client
	urls endpoint.List
	user string
}

func newManagement(c *Config, urls endpoint.List, t *tls.Config) *management {
	m := &management{Client: httpapi.New("a management plugin", t, connectLimit), urls: urls, user: c.User}
	m.SignIn(c.User, rabbitserver.Password(c.User, c.Password))
	return m
}

// get queries the first address that answers. Errors other than refused credentials and missing
// objects count as no answer: a node may be starting.
func (m *management) get(ctx context.Context, path string, query url.Values, into any) error {
	var errs []error
	for _, u := range m.urls {
		err := m.Get(ctx, u.String(), path, query, into)
		var refused *httpapi.Refusal
		switch {
		case errors.Is(err, driver.ErrAuth):
			return fmt.Errorf("user %s, who needs the tag monitoring: %w", m.user, err)
		case errors.As(err, &refused) && !httpapi.Missing(err):
			err = fmt.Errorf("%w: %w", driver.ErrUnreachable, err)
		}
		if !errors.Is(err, driver.ErrUnreachable) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// nodes returns the number of running nodes.
func (m *management) nodes(ctx context.Context) (int, error) {
	var all []struct{ Running bool }
	err := m.get(ctx, "/api/nodes", url.Values{"columns": {"running"}}, &all)
	n := 0
	for _, node := range all {
		if node.Running {
			n++
		}
	}
	return n, err
}

// mostLeaders limits the queues that leaders covers: one page of the plugin's.
const mostLeaders = 500

// leaders returns the addresses of the nodes that lead queues whose names start with begin, of the
// first mostLeaders. It always makes two requests.
func (m *management) leaders(ctx context.Context, vhost, begin string) ([]string, error) {
	var o struct {
		Listeners []struct {
			Node, Protocol string
			Address        string `json:"ip_address"`
			Port           int
		}
	}
	if err := m.get(ctx, "/api/overview", url.Values{"columns": {"listeners"}}, &o); err != nil {
		return nil, err
	}
	at := map[string]string{}
	for _, l := range o.Listeners {
		if l.Protocol == "amqp" || l.Protocol == "amqp/ssl" && at[l.Node] == "" {
			at[l.Node] = net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
		}
	}
	var queues struct {
		Items []struct{ Leader, Node string }
	}
	err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost), url.Values{
		"page": {"1"}, "page_size": {strconv.Itoa(mostLeaders)}, "use_regex": {"true"}, "name": {"^" + regexp.QuoteMeta(begin)}, "columns": {"name,leader,node"},
	}, &queues)
	var all []string
	for _, q := range queues.Items {
		if a := at[cmp.Or(q.Leader, q.Node)]; a != "" {
			all = append(all, a)
		}
	}
	return all, err
}

// A limited is a queue with its limits on message age and count.
type limited struct {
	Name      string
	Type      string
	Arguments any // an empty list if there are none
	Policy    string
}

// discards returns the settings by which queues whose names match a pattern drop messages, of the
// first mostLeaders. Statistics name a new queue's policy only after seconds, and are the only
// source for an operator policy's name, so it queries without them, and matches operator policies
// itself. What the user may not read is left out.
func (m *management) discards(ctx context.Context, vhost, pattern string) (all []string, err error) {
	var queues struct{ Items []limited }
	if err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost), url.Values{
		"page": {"1"}, "page_size": {strconv.Itoa(mostLeaders)}, "use_regex": {"true"}, "name": {pattern}, "disable_stats": {"true"},
	}, &queues); err != nil {
		return nil, err
	}
	var operators []operatorPolicy
	if err := m.get(ctx, "/api/operator-policies/"+url.PathEscape(vhost), nil, &operators); err != nil && !errors.Is(err, driver.ErrAuth) && !httpapi.Missing(err) {
		return nil, err
	}
	policies := map[string]map[string]any{"": nil}
	for _, q := range queues.Items {
		if _, known := policies[q.Policy]; !known {
			var p struct{ Definition map[string]any }
			err := m.get(ctx, "/api/policies/"+url.PathEscape(vhost)+"/"+url.PathEscape(q.Policy), nil, &p)
			if err != nil && !errors.Is(err, driver.ErrAuth) && !httpapi.Missing(err) {
				return nil, err
			}
			policies[q.Policy] = p.Definition
		}
		all = append(all, q.discards("policy "+q.Policy, policies[q.Policy])...)
		if o := q.operator(operators); o != nil {
			q.Arguments = nil // already reported
			all = append(all, q.discards("operator policy "+o.Name, o.Definition)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// An operatorPolicy limits queues in addition to their policies
// (https://www.rabbitmq.com/docs/policies#operator-policies).
type operatorPolicy struct {
	Name, Pattern string
	ApplyTo       string `json:"apply-to"`
	Priority      int
	Definition    map[string]any
}

// operator returns the operator policy of a queue: of the matching ones, the first with the highest
// priority; nil: none.
func (q *limited) operator(all []operatorPolicy) (best *operatorPolicy) {
	for i := range all {
		p := &all[i]
		matches, err := regexp.MatchString(p.Pattern, q.Name)
		applies := slices.Contains([]string{"all", "queues", q.Type + "_queues", q.Type + "s"}, p.ApplyTo)
		if err == nil && matches && applies && (best == nil || p.Priority > best.Priority) {
			best = p
		}
	}
	return best
}

// discards returns the arguments and policy settings by which a queue drops messages.
func (q *limited) discards(from string, policy map[string]any) (all []string) {
	arguments, _ := q.Arguments.(map[string]any)
	overflow := [...]any{arguments["x-overflow"], policy["overflow"]}
	if q.Type == quorum {
		slices.Reverse(overflow[:]) // the policy's comes first
	}
	refuses := strings.HasPrefix(fmt.Sprint(cmp.Or(overflow[:]...)), "reject-publish")
	moves := cmp.Or(arguments["x-dead-letter-exchange"], policy["dead-letter-exchange"]) != nil
	for _, x := range []struct {
		key, says string
		applies   bool
	}{
		{"message-ttl", "messages expire after %s ms", q.Type != "stream"},
		{"expires", "a queue that nobody uses is deleted after %s ms", q.Type != "stream"},
		{"max-length", "a queue drops the oldest beyond %s messages", q.Type != "stream" && !refuses},
		{"max-length-bytes", "a queue drops the oldest beyond %s bytes", !refuses},
		{"delivery-limit", "messages that return more than %s times are dropped", q.Type == quorum && !moves},
	} {
		for name, v := range map[string]any{"argument x-" + x.key: arguments["x-"+x.key], from + ": " + x.key: policy[x.key]} {
			if f, ok := v.(float64); ok {
				v = strconv.FormatFloat(f, 'f', -1, 64)
			}
			if v != nil && x.applies {
				all = append(all, fmt.Sprintf(x.says, fmt.Sprint(v))+fmt.Sprintf(" (%s %v)", name, v))
			}
		}
	}
	slices.Sort(all)
	return all
}

// queue returns a queue's kind. The plugin reports a new queue with some delay, so the request is
// repeated for up to callLimit.
func (m *management) queue(ctx context.Context, vhost, queue string) (queueKind, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		var s struct {
			Type    string
			Durable bool
			Members []string
			Backing struct {
				Version int
			} `json:"backing_queue_status"`
			Storage int `json:"storage_version"`
		}
		err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), nil, &s)
		if err != nil && !httpapi.Missing(err) {
			return queueKind{}, err
		}
		k := queueKind{kind: s.Type, durable: s.Durable, replicas: max(1, len(s.Members))}
		for _, v := range []int{s.Storage, s.Backing.Version} {
			if v == 1 || v == 2 {
				k.version = fmt.Sprint(v)
			}
		}
		complete := k.kind != ""
		switch k.kind {
		case quorum:
			complete = len(s.Members) > 0
		case classic:
			complete = k.version != ""
		}
		if complete || !retry.Pause(ctx, 100*time.Millisecond) {
			return k, err
		}
	}
}
