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

// settings returns region and credentials: from the options, or else as the AWS client finds them.
// They are resolved here, so that missing credentials are detected before the run.
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

// A link is a client with its own connections.
type link struct {
	*client.Client
	transport *http.Transport
}

// connect creates a client with up to idle idle connections and that many attempts per call. It
// sends nothing.
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

// Close closes the idle connections.
func (l *link) Close() { l.transport.CloseIdleConnections() }

// words maps the service's errors, which have a code
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html).
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

// code maps an error code to the contract's error; nil: none.
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
	// This code has many meanings; the size messages are the service's, or ElasticMQ's.
	if strings.Contains(message, "must be shorter than") || strings.Contains(message, "MessageTooLong") {
		return driver.ErrTooLarge
	}
	return nil
}

// refused returns the error of a batch's message that the service rejected.
func refused(e *types.BatchResultErrorEntry) error {
	err := fmt.Errorf("%s (%s)", aws.ToString(e.Message), aws.ToString(e.Code))
	if is := code(aws.ToString(e.Code), aws.ToString(e.Message)); is != nil {
		return fmt.Errorf("%w: %w", is, err)
	}
	return err
}

// missing reports whether the queue does not exist.
func missing(err error) bool {
	var gone *types.QueueDoesNotExist
	return errors.As(err, &gone)
}

// answeredBy returns the server's name from an error answer.
func answeredBy(err error) string {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil {
		return ""
	}
	return r.Response.Header.Get("Server")
}
