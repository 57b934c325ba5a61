package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	client "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/failure"
)

// settings returns region and credentials: those of the options, and what they leave
// open as the AWS client finds it. What it finds is asked for here, so that a
// lack of credentials is known before the run.
func (c *Config) settings(ctx context.Context) (aws.Config, error) {
	s := aws.Config{Region: c.Region}
	switch {
	case c.Credentials == madeUp:
		s.Credentials = credentials.NewStaticCredentialsProvider("weir", "weir", "")
	case c.AccessKey != "":
		s.Credentials = credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey.Reveal(), c.SessionToken.Reveal())
	}
	if s.Region != "" && s.Credentials != nil {
		return s, nil
	}
	found, err := config.LoadDefaultConfig(ctx, config.WithSharedConfigProfile(c.Profile))
	if err != nil {
		return s, fmt.Errorf("reading the AWS settings: %w: %w", driver.ErrUnsupported, err)
	}
	if s.Region == "" {
		s.Region = found.Region
	}
	if s.Region == "" {
		return s, &driver.OptionError{Name: "region", Err: errors.New("is not given, and AWS_REGION and the shared files have none")}
	}
	if s.Credentials == nil {
		s.Credentials = found.Credentials
		if _, err := s.Credentials.Retrieve(ctx); err != nil {
			return s, fmt.Errorf("looking for AWS credentials: %w: %w", driver.ErrAuth, words.Plain(err))
		}
	}
	return s, nil
}

// A link is a client with connections of its own.
type link struct {
	*client.Client
	transport *http.Transport
}

// connect makes a client that keeps so many idle connections and tries each call so often.
// It sends nothing.
func (c *conn) connect(idle, attempts int) (*link, error) {
	at, err := servers.Parse(c.cfg.Address)
	if err != nil {
		return nil, err
	}
	t, err := at.TLS(c.cfg.TLS)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: t, TLSHandshakeTimeout: c.cfg.Timeout, MaxIdleConnsPerHost: idle}
	return &link{transport: transport, Client: client.NewFromConfig(c.aws, func(o *client.Options) {
		o.BaseEndpoint = aws.String(at.String())
		o.RetryMaxAttempts = attempts
		o.HTTPClient = &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})}, nil
}

// Close ends the connections that no call uses.
func (l *link) Close() { l.transport.CloseIdleConnections() }

// words maps the errors of the service, which carry a code.
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html)
var words = failure.Map{
	Is: func(err error) error {
		var e smithy.APIError
		var unread *smithy.DeserializationError
		switch {
		case errors.As(err, &e):
			return code(e.ErrorCode(), e.ErrorMessage())
		case errors.As(err, &unread) && !failure.Broken(err):
			return driver.ErrUnsupported
		}
		return nil
	},
	Hide: regexp.MustCompile(`, RequestID: [^,]*`),
}

// code returns the contract's error for an error code; nil: none.
func code(code, message string) error {
	code = code[strings.LastIndexAny(code, ".#")+1:]
	switch code {
	case "InvalidClientTokenId", "SignatureDoesNotMatch", "AccessDenied", "AccessDeniedException", "MissingAuthenticationToken",
		"UnrecognizedClientException", "ExpiredToken", "InvalidAccessKeyId", "InvalidSecurity", "IncompleteSignature", "InvalidSignatureException":
		return driver.ErrAuth
	case "RequestThrottled", "Throttling", "ThrottlingException", "OverLimit", "ServiceUnavailable":
		return driver.ErrOverloaded
	case "BatchRequestTooLong":
		return driver.ErrTooLarge
	case "QueueDoesNotExist", "NonExistentQueue", "InvalidMessageContents", "UnsupportedOperation", "QueueNameExists", "QueueDeletedRecently":
		return driver.ErrUnsupported
	}
	// One code stands for much; the message of the size is the service's, or ElasticMQ's.
	if strings.Contains(message, "must be shorter than") || strings.Contains(message, "MessageTooLong") {
		return driver.ErrTooLarge
	}
	return nil
}

// refused is one message of a batch that the service did not take.
func refused(e *types.BatchResultErrorEntry) error {
	err := fmt.Errorf("%s (%s)", aws.ToString(e.Message), aws.ToString(e.Code))
	if is := code(aws.ToString(e.Code), aws.ToString(e.Message)); is != nil {
		return fmt.Errorf("%w: %w", is, err)
	}
	return err
}

// missing reports whether there is no such queue.
func missing(err error) bool {
	var gone *types.QueueDoesNotExist
	return errors.As(err, &gone)
}

// answeredBy returns what the server calls itself in an answer that is an error.
func answeredBy(err error) string {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil {
		return ""
	}
	return r.Response.Header.Get("Server")
}
