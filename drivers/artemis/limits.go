package artemis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/amqp1conn"
)

// Values of address-full-policy.
const (
	fullBlocks = "BLOCK"
	fullDrops  = "DROP"
)

// addressSettings are settings of an address. The server leaves out those that are not set
// (https://artemis.apache.org/components/artemis/documentation/latest/address-settings.html).
type addressSettings struct {
	FullPolicy  string `json:"addressFullMessagePolicy"`
	MaxBytes    int64  `json:"maxSizeBytes"`
	MaxMessages int64  `json:"maxSizeMessages"`
	Expiry      int64  `json:"expiryDelay"`
	MaxExpiry   int64  `json:"maxExpiryDelay"`
	MinExpiry   int64  `json:"minExpiryDelay"`
}

// settingsOf returns the settings of a queue's address, which has the queue's name.
func (s *system) settingsOf(ctx context.Context, a *amqp1conn.Admin, queue string) (of addressSettings, err error) {
	var text string
	if err := s.ask(ctx, a, broker, operation, "getAddressSettingsAsJSON", &text, queue); err != nil {
		return of, err
	}
	of = addressSettings{MaxBytes: -1, MaxMessages: -1, Expiry: -1, MaxExpiry: -1, MinExpiry: -1}
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return of, fmt.Errorf("getAddressSettingsAsJSON of %s: %w: %s", queue, driver.ErrUnsupported, err.Error())
	}
	return of, nil
}

// discards returns the settings by which the server drops messages of weir, which have no expiry of
// their own, in a queue with that ring size.
func (of *addressSettings) discards(ring int64) (all []string) {
	for _, x := range []struct {
		name string
		ms   int64
	}{{"expiry-delay", of.Expiry}, {"max-expiry-delay", of.MaxExpiry}, {"min-expiry-delay", of.MinExpiry}} {
		if x.ms >= 0 {
			all = append(all, fmt.Sprintf("messages expire after %d ms (%s)", x.ms, x.name))
			break // the first counts
		}
	}
	if of.FullPolicy == fullDrops {
		all = append(all, fmt.Sprintf("an address that is full drops new messages (address-full-policy DROP, max-size-bytes %d, max-size-messages %d)", of.MaxBytes, of.MaxMessages))
	}
	if ring >= 0 {
		all = append(all, fmt.Sprintf("a queue drops the oldest messages beyond %d (ring-size)", ring))
	}
	return all
}

// dropped adds to f which settings drop messages of queues, and how many were dropped. A full
// address counts a message as routed that it then drops, and the queue does not count it as added.
func (s *system) dropped(ctx context.Context, a *amqp1conn.Admin, queues []string, f *driver.Facts) error {
	if len(queues) > amqp1conn.MostCounted {
		return nil
	}
	totals := []driver.Discarded{{Counter: "MessagesExpired"}, {Counter: "MessagesKilled"}, {Counter: "RoutedMessageCount less MessagesAdded"}}
	for _, q := range queues {
		var ring, routed, added int64
		var expired, killed uint64
		for name, into := range map[string]any{"ringSize": &ring, "messagesExpired": &expired, "messagesKilled": &killed} {
			if err := s.ask(ctx, a, "queue."+q, attribute, name, into); missing(err) {
				return nil // not declared yet
			} else if err != nil {
				return err
			}
		}
		of, err := s.settingsOf(ctx, a, q)
		if err != nil {
			return err
		}
		f.Discards = append(f.Discards, of.discards(ring)...)
		totals[0].Messages += expired
		totals[1].Messages += killed
		if of.FullPolicy != fullDrops {
			continue
		}
		var at []string
		if err := s.ask(ctx, a, "address."+q, attribute, "queueNames", &at); err != nil || len(at) != 1 {
			continue // each of several queues may add a message
		}
		if err := s.ask(ctx, a, "queue."+q, attribute, "messagesAdded", &added); err != nil {
			return err
		}
		if err := s.ask(ctx, a, "address."+q, attribute, "routedMessageCount", &routed); err != nil {
			return err
		}
		totals[2].Messages += uint64(max(0, routed-added))
	}
	slices.Sort(f.Discards)
	f.Discards = slices.Compact(f.Discards)
	f.Discarded = totals
	return nil
}

// Full implements amqp1conn.Limited.
func (s *system) Full(ctx context.Context, a *amqp1conn.Admin, queue string) (string, error) {
	of, err := s.settingsOf(ctx, a, queue)
	if err != nil || of.FullPolicy != fullBlocks {
		return "", err
	}
	var percent int64
	if err := s.ask(ctx, a, "address."+queue, attribute, "addressLimitPercent", &percent); err != nil {
		return "", err
	}
	if percent >= 100 {
		return fmt.Sprintf("the address %s is full (address-full-policy BLOCK, max-size-bytes %d, max-size-messages %d)", queue, of.MaxBytes, of.MaxMessages), nil
	}
	var bytes, most int64
	if err := s.ask(ctx, a, broker, attribute, "addressMemoryUsage", &bytes); err != nil {
		return "", err
	}
	if err := s.ask(ctx, a, broker, attribute, "globalMaxSize", &most); err != nil {
		return "", err
	}
	if most > 0 && bytes >= most {
		return fmt.Sprintf("all addresses together are full: %d bytes of global-max-size %d (address-full-policy BLOCK)", bytes, most), nil
	}
	return "", nil
}
