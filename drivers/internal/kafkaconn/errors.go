package kafkaconn

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// words maps the errors of the protocol and of the client.
var words = failure.Map{Is: kind}

// kind maps an error of the protocol or the client to the contract's error
// (https://kafka.apache.org/43/design/protocol/#protocol_error_codes).
func kind(err error) error {
	for kind, of := range map[error][]error{
		driver.ErrTooLarge: {kerr.MessageTooLarge, kerr.RecordListTooLarge},
		driver.ErrAuth: {
			kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.TopicAuthorizationFailed,
			kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
		},
		driver.ErrTimeout:    {kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kerr.RequestTimedOut},
		driver.ErrOverloaded: {kgo.ErrMaxBuffered, kerr.ThrottlingQuotaExceeded},
		driver.ErrBlocked:    {kerr.KafkaStorageError, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.LeaderNotAvailable},
		driver.ErrClosed:     {kgo.ErrClientClosed, kgo.ErrAborting},
		driver.ErrUnsupported: {
			kerr.InvalidReplicationFactor, kerr.InvalidPartitions, kerr.PolicyViolation, kerr.UnsupportedVersion, kerr.InvalidTopicException,
			kerr.UnsupportedCompressionType,
		},
	} {
		for _, e := range of {
			if errors.Is(err, e) {
				return kind
			}
		}
	}
	return nil
}

// Cause adds the matching contract error to a client error. Without a match, it only removes local
// ports from the text. It allocates; there are no errors on the hot path.
func Cause(err error) error { return words.Cause(err) }

// Unanswered is Cause for a request: anything but an answer of a broker becomes ErrUnreachable.
func Unanswered(err error) error {
	if shards := (*kadm.ShardErrors)(nil); errors.As(err, &shards) && len(shards.Errs) > 0 {
		err = shards.Errs[0].Err
	}
	if answer := (*kerr.Error)(nil); errors.As(err, &answer) {
		return Cause(err)
	}
	return words.Unreachable(err)
}

// said adds a broker's message to its error.
func said(err error, message string) error {
	if err == nil || message == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, message)
}

// about adds the subject to an error; nil stays nil.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
