package postgres

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/weirmq/weir/driver"
	"github.com/weirmq/weir/drivers/internal/trial"
)

// claims answers connections as a server of some version that is, or is not, a standby, with the
// same answer to everything.
func claims(t *testing.T, number, version, standby string) (address string) {
	t.Helper()
	return trial.Serve(t, func(c net.Conn) {
		b := pgproto3.NewBackend(c, c)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		for b.Flush() == nil {
			m, err := b.Receive()
			if err != nil {
				return
			}
			if _, ok := m.(*pgproto3.Sync); !ok {
				continue
			}
			b.Send(&pgproto3.ParseComplete{})
			b.Send(&pgproto3.BindComplete{})
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
				{Name: []byte("number")}, {Name: []byte("version")}, {Name: []byte("standby")},
			}})
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(number), []byte(version), []byte(standby)}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	})
}

func TestOldServerIsRejected(t *testing.T) {
	for _, x := range []struct{ number, version, standby, want string }{
		{"90624", "9.6.24", "f", "the server is PostgreSQL 9.6.24 (10 or later)"},
		{"80000", "8.0", "f", "the server is PostgreSQL 8.0 (10 or later)"},
		{"v22", "of another make", "f", "the server is PostgreSQL of another make (10 or later)"},
		{"150004", "15.4", "t", "is a standby"},
	} {
		trial.Refuses(t, Definition(), trial.At([]string{claims(t, x.number, x.version, x.standby)}, nil),
			trial.Mistake{Name: x.version, Is: driver.ErrUnsupported, Says: x.want})
	}
}
