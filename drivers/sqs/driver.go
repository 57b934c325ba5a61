// Package sqs drives Amazon SQS, and servers that speak its protocol, such as ElasticMQ. page.md
// says what weir's terms mean here.
//
// A key travels as a second binary attribute. Calls that receive are never tried again by the
// client: the consumer reports the failure first.
package sqs

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/each"
	"github.com/weirmq/weir/drivers/internal/endpoint"
	"github.com/weirmq/weir/drivers/internal/known"
	"github.com/weirmq/weir/drivers/internal/names"
)

//go:embed page.md recipe.yaml
var files embed.FS

var page = driver.MustPage(files)

// The service's limits
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html).
const (
	batchMost = 10      // messages per call
	sizeMost  = 1 << 20 // bytes per message, and for all messages of a call
)

// Values of the options queue, payload and credentials.
const (
	standard  = "standard"
	fifo      = "fifo"
	attribute = "attribute"
	body      = "body"
	found     = "aws"
	madeUp    = "made-up"
)

func Definition() driver.Definition {
	return driver.Definition{
		Name:    "sqs",
		Title:   "Amazon SQS",
		Summary: "Standard and FIFO queues of Amazon SQS, and of servers that speak its protocol.",
		Client:  "github.com/aws/aws-sdk-go-v2/service/sqs",
		Capabilities: driver.Capabilities{
			Consume:         true,
			Keys:            true,
			Batch:           true,
			Competing:       true,
			Nack:            true,
			DeadLetters:     true,
			SettleConfirmed: true,
			Retains:         true, // a queue keeps its messages
			Settle:          []driver.Settle{driver.SettleBatch, driver.SettleEach},
			Guarantees:      []driver.Guarantee{driver.Received},
			Delivery:        driver.AtLeastOnce,
			Ordering:        driver.Unordered, // for a standard queue; a FIFO queue preserves it per message group
			MaxPayload:      sizeMost - overhead,
		},
		New: func() driver.Config {
			return &Config{
				Address: servers.Like, Credentials: found, Queue: standard, Payload: attribute, Gather: batchMost, Senders: 4, Receivers: 4,
				Wait: time.Second, VisibilityTimeout: 30 * time.Second, Attempts: 3,
				Timeout: 10 * time.Second, ReconnectWait: 250 * time.Millisecond,
			}
		},
		Page: page,
	}
}

// Config holds the driver's settings.
type Config struct {
	Address      string            `option:"address" help:"Endpoint of the service, as a URL: https://sqs.REGION.amazonaws.com, or a server of one's own."`
	Region       string            `option:"region" help:"Region that requests are signed for; none: as the AWS client finds it (AWS_REGION, shared files)."`
	Profile      string            `option:"profile" help:"Profile of the shared AWS files; none: as the AWS client finds it (AWS_PROFILE)."`
	Credentials  string            `option:"credentials" allowed:"aws,made-up" help:"What signs requests: access-key, or else what the AWS client finds (aws); anything, for a server that does not check it (made-up)."`
	AccessKey    string            `option:"access-key" help:"Access key id; none: credentials as the AWS client finds them (AWS_ACCESS_KEY_ID, shared files, roles)."`
	SecretKey    driver.Secret     `option:"secret-key" help:"Secret access key of access-key."`
	SessionToken driver.Secret     `option:"session-token" help:"Session token of access-key, where it is temporary."`
	TLS          driver.TLSOptions `option:"tls"`

	Queue             string        `option:"queue" allowed:"standard,fifo" help:"Kind of queue that weir makes."`
	Payload           string        `option:"payload" allowed:"attribute,body" help:"Where payloads travel: a binary attribute, or the body as base64, which leaves room for three quarters of the bytes."`
	Gather            int           `option:"gather" min:"1" max:"10" help:"Most single messages that share a call because they wait; 1: each has its own."`
	Senders           int           `option:"senders" min:"1" max:"64" help:"Calls of one producer at a time. With queue fifo it is always 1, which keeps the order."`
	Receivers         int           `option:"receivers" min:"1" max:"64" help:"Calls of one consumer at a time, for each queue; each receives up to 10 messages and then settles them."`
	Wait              time.Duration `option:"wait" min:"0s" max:"20s" unit:"1s" help:"Long polling: how long a call waits for messages. A consumer ends when its calls have returned."`
	VisibilityTimeout time.Duration `option:"visibility-timeout" min:"1s" max:"12h" unit:"1s" help:"After how long a message that was received and not settled may be received again."`
	Attempts          int           `option:"attempts" min:"1" max:"10" help:"How often the client tries a call that fails. Above 1, a standard queue can get a message twice."`
	Timeout           time.Duration `option:"timeout" min:"1s" max:"5m" help:"Longest time of one call with all its attempts, beside wait."`
	ReconnectWait     time.Duration `option:"reconnect-wait" min:"1ms" max:"1m" help:"Pause of a consumer after a call that failed. The attempts never end."`
	Version           string        `option:"version" help:"Version of the server, which it does not report; for the result only."`
}

// servers describes valid addresses: ElasticMQ's port, and with TLS the usual one.
var servers = endpoint.Kind{
	Schemes: []string{"http"}, Secure: []string{"https"}, Port: "9324", Ports: map[string]string{"https": "443"},
	Like: "http://127.0.0.1:9324", Path: true,
}

// Validate reports every fault that option bounds do not catch, joined.
func (c *Config) Validate() error {
	_, err := servers.All("address", []string{c.Address})
	faults := driver.Faults{err, c.TLS.Validate()}
	if (c.AccessKey == "") != c.SecretKey.IsZero() {
		faults.Add("access-key", "access-key and secret-key go together")
	}
	if c.AccessKey == "" && !c.SessionToken.IsZero() {
		faults.Add("session-token", "goes with access-key and secret-key")
	}
	if c.AccessKey != "" && c.Credentials == madeUp {
		faults.Add("credentials", "made-up goes without access-key")
	}
	return faults.Join()
}

func (c *Config) Narrow(to driver.Capabilities) driver.Capabilities {
	if c.Payload == body {
		to.MaxPayload = base64.StdEncoding.DecodedLen(sizeMost)
	}
	return to
}

// Open looks up a missing queue, within ctx and the option timeout.
func (c *Config) Open(ctx context.Context, run driver.Run) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	settings, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	x := &conn{cfg: *c, run: run, aws: settings}
	if x.link, err = x.connect(1, 1); err != nil {
		return nil, err
	}
	if _, err := x.Facts(ctx); err != nil {
		x.link.Close()
		return nil, err
	}
	return x, nil
}

// A conn is one run's connection to the service.
type conn struct {
	cfg  Config
	run  driver.Run
	aws  aws.Config
	link *link // for requests

	queues known.Table[string, queue] // found queues, by name
}

// A queue holds a destination's messages.
type queue struct {
	url  *string
	fifo bool
	most int64 // maximum message size in bytes
}

// suffix ends the names of FIFO queues.
const suffix = ".fifo"

// queueName matches valid queue names.
var queueName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)$`)

func (c *conn) name(destination string) (string, error) {
	if c.run.Existing {
		if !queueName.MatchString(destination) {
			return "", fmt.Errorf("a queue cannot have this name: %w", driver.ErrUnsupported)
		}
		return destination, nil
	}
	// In a token, _ only precedes two digits.
	n := strings.ReplaceAll(names.Join(72, "weir", c.run.ID, destination), ".", "__")
	if c.cfg.Queue == fifo {
		n += suffix
	}
	return n, nil
}

// queue looks up a destination's queue and its maximum message size.
func (c *conn) queue(ctx context.Context, destination string) (queue, error) {
	name, err := c.name(destination)
	if err != nil {
		return queue{}, err
	}
	return c.queues.Of(name, func() (queue, error) {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		at, err := c.link.GetQueueUrl(ctx, &client.GetQueueUrlInput{QueueName: &name})
		if err != nil {
			return queue{}, words.Cause(err)
		}
		attributes, err := c.attributes(ctx, at.QueueUrl, types.QueueAttributeNameAll)
		q := queue{url: at.QueueUrl, fifo: strings.HasSuffix(name, suffix), most: sizeMost}
		if n := number(attributes, types.QueueAttributeNameMaximumMessageSize); n > 0 {
			q.most = int64(n)
		}
		return q, err
	})
}

// attributes reads attributes of a queue.
func (c *conn) attributes(ctx context.Context, url *string, which ...types.QueueAttributeName) (map[string]string, error) {
	out, err := c.link.GetQueueAttributes(ctx, &client.GetQueueAttributesInput{QueueUrl: url, AttributeNames: which})
	if err != nil {
		return nil, words.Unreachable(err)
	}
	return out.Attributes, nil
}

// number parses an attribute; 0 if the service does not report it.
func number(attributes map[string]string, name types.QueueAttributeName) uint64 {
	n, _ := strconv.ParseUint(attributes[string(name)], 10, 64)
	return n
}

// Declare creates the queues.
func (c *conn) Declare(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		name, err := c.name(d.Name)
		if err != nil {
			return err
		}
		in := &client.CreateQueueInput{QueueName: &name, Attributes: map[string]string{
			string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(int(c.cfg.VisibilityTimeout / time.Second)),
		}}
		if c.cfg.Queue == fifo {
			in.Attributes[string(types.QueueAttributeNameFifoQueue)] = "true"
		}
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		if d.Refusals > 0 {
			if in.Attributes[string(types.QueueAttributeNameRedrivePolicy)], err = c.redrive(ctx, d); err != nil {
				return err
			}
		}
		_, err = c.link.CreateQueue(ctx, in)
		return words.Cause(err)
	})
}

// redrive returns the policy by which the service moves a destination's messages to its dead-letter
// queue. A message that was received that often is moved when it would be received again.
func (c *conn) redrive(ctx context.Context, d driver.Destination) (string, error) {
	q, err := c.queue(ctx, driver.DeadLetters(d.Name))
	if err != nil {
		return "", fmt.Errorf("the dead letters: %w", err)
	}
	attributes, err := c.attributes(ctx, q.url, types.QueueAttributeNameQueueArn)
	if err != nil {
		return "", fmt.Errorf("the dead letters: %w", err)
	}
	policy, err := json.Marshal(map[string]string{
		"deadLetterTargetArn": attributes[string(types.QueueAttributeNameQueueArn)], "maxReceiveCount": strconv.Itoa(d.Refusals),
	})
	return string(policy), err
}

func (c *conn) Delete(ctx context.Context, ds ...driver.Destination) error {
	return each.Of(ds, func(d driver.Destination) error {
		name, err := c.name(d.Name)
		if err != nil {
			return err
		}
		c.queues.Forget(name)
		ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		at, err := c.link.GetQueueUrl(ctx, &client.GetQueueUrlInput{QueueName: &name})
		if err == nil {
			_, err = c.link.DeleteQueue(ctx, &client.DeleteQueueInput{QueueUrl: at.QueueUrl})
		}
		if missing(err) {
			return nil
		}
		return words.Cause(err)
	})
}

// Backlog implements driver.Backlogger: messages that are visible, received and not settled, or
// delayed. The service calls its numbers approximate.
func (c *conn) Backlog(ctx context.Context, _ string, destinations []string) (uint64, error) {
	all := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	return each.Sum(destinations, func(d string) (sum uint64, err error) {
		q, err := c.queue(ctx, d)
		if err != nil {
			return 0, words.Unreachable(err)
		}
		attributes, err := c.attributes(ctx, q.url, all...)
		for _, name := range all {
			sum += number(attributes, name)
		}
		return sum, err
	})
}

// Facts looks up a missing queue, which requires no permissions for a queue. The service does not
// reveal its version, so it comes from the option version.
func (c *conn) Facts(ctx context.Context) (driver.Facts, error) {
	_, err := c.link.GetQueueUrl(ctx, &client.GetQueueUrlInput{QueueName: aws.String("weir__none")})
	if err != nil && !missing(err) {
		return driver.Facts{}, words.Unreachable(err)
	}
	f := driver.Facts{
		Name: "SQS", Version: c.cfg.Version, Nodes: 1,
		Confirms: page.Confirmations.Of(nil),
		Settings: map[string]string{"queue": c.cfg.Queue, "visibility-timeout": c.cfg.VisibilityTimeout.String()},
	}
	if strings.HasPrefix(answeredBy(err), "pekko-http/") {
		f.Name = "ElasticMQ"
	}
	if f.Version == "" {
		f.Version = "not told"
	}
	return f, nil
}

// Close ends the connections.
func (c *conn) Close(context.Context) error {
	c.link.Close()
	return nil
}

var _ driver.Narrowed = (*Config)(nil)
