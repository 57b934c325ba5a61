package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirmq/weir/driver"
)

// A sending is a producer's connection with its statements.
type sending struct {
	*link
	fuse    *fuse
	inserts map[string]insert            // by destination
	notify  *pgconn.StatementDescription // nil: do not notify
	ends    []int                        // scratch: end of each transaction
	params  [2][]byte                    // scratch
}

// An insert describes how to send a message to a table.
type insert struct {
	statement *pgconn.StatementDescription
	keyed     bool
	channel   [][]byte // parameters of notify
}

// open connects and prepares the statements.
func (p *producer) open(ctx context.Context) (*sending, error) {
	cfg := &p.conn.cfg
	l, err := cfg.connect(ctx, p.conn.run, p.name, cfg.Address)
	if err != nil {
		return nil, err
	}
	s := &sending{link: l, fuse: newFuse(cfg.Timeout, l.kill), inserts: map[string]insert{}}
	fail := func(err error) (*sending, error) {
		l.kill()
		return nil, err
	}
	for d, t := range p.tables.All() {
		stmt, err := l.Prepare(ctx, "insert"+strconv.Itoa(len(s.inserts)), t.insert(), nil)
		if err != nil {
			return fail(fmt.Errorf("destination %s: %w", d, cause(err)))
		}
		s.inserts[d] = insert{stmt, t.key, [][]byte{[]byte(t.channel)}}
	}
	if cfg.Notify {
		if s.notify, err = l.Prepare(ctx, "notify", `SELECT pg_notify($1, '')`, nil); err != nil {
			return fail(cause(err))
		}
	}
	return s, nil
}

// binaryFormat is the format of parameters and results.
var binaryFormat = []int16{1}

// none is an empty payload, which is not NULL.
var none = []byte{}

// send sends items as one pipeline of transactions, and completes them. An error means the end of
// the connection.
func (p *producer) send(s *sending, items []item) error {
	s.fuse.light()
	pipe := s.StartPipeline(context.Background())
	s.ends = s.ends[:0]
	begin := 0
	for i, it := range items {
		in := s.inserts[it.m.Destination]
		params := append(s.params[:0], it.m.Payload)
		if it.m.Payload == nil {
			params[0] = none
		}
		if in.keyed {
			params = append(params, it.m.Key)
		}
		pipe.SendQueryStatement(in.statement, params, binaryFormat, nil)
		if !it.last || i+1-begin < p.conn.cfg.Transaction && i+1 < len(items) {
			continue
		}
		if s.notify != nil {
			pipe.SendQueryStatement(s.notify, in.channel, nil, nil)
		}
		pipe.SendPipelineSync()
		s.ends = append(s.ends, i+1)
		begin = i + 1
	}
	err := pipe.Flush()
	done := 0
	for _, end := range s.ends {
		if err != nil {
			break
		}
		var failed error
		if failed, err = s.committed(pipe, nil); err != nil {
			break
		}
		for _, it := range items[done:end] {
			p.Complete(it.m, failed)
		}
		done = end
		s.fuse.light()
	}
	if err == nil {
		err = pipe.Close()
	} else {
		_ = pipe.Close() // same error
	}
	silent := s.fuse.out()
	if err == nil {
		return nil
	}
	err = cause(err)
	switch {
	case p.life.Err() != nil:
		err = fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case silent:
		err = fmt.Errorf("%w: the server was silent for %v", driver.ErrTimeout, p.conn.cfg.Timeout)
	}
	p.refuse(items[done:], err)
	return err
}

// committed reads the answers to one transaction, and calls row for each row among them. The row's
// values belong to the client again on return. failed is why the transaction was rolled back; err
// means the end of the connection. An executed statement is committed by the following sync, once
// that is answered.
func (l *link) committed(pipe *pgconn.Pipeline, row func(values [][]byte)) (failed, err error) {
	for {
		results, err := pipe.GetResults()
		if r, ok := results.(*pgconn.ResultReader); ok && err == nil {
			for row != nil && r.NextRow() {
				row(r.Values())
			}
			_, err = r.Close()
		}
		var pg *pgconn.PgError
		switch {
		case errors.As(err, &pg):
			if failed == nil {
				failed = cause(err)
			}
		case err != nil && errors.Is(failed, driver.ErrDisconnected): // the server gave the reason
			return nil, failed
		case err != nil:
			return nil, err
		case results == nil:
			return nil, errors.New("the server owes an answer")
		}
		if _, ok := results.(*pgconn.PipelineSync); !ok {
			continue
		}
		if l.doubtful && failed == nil {
			failed = fmt.Errorf("committed, but the server gave up waiting for its standbys: %w", driver.ErrTimeout)
		}
		l.doubtful = false
		return failed, nil
	}
}
