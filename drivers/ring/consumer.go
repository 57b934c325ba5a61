package ring

import "context"

// Take copies the payload of the next cell into buf, waiting until there is one,
// and frees the cell.
func (q *queue) Take(ctx context.Context, buf []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err // a full ring must not outrun a stop
	}
	p := q.out.Load()
	for looks := 0; ; {
		s, cell := q.at(p)
		switch d := int64(s.seq.Load() - (p + 1)); {
		case d == 0:
			if q.out.CompareAndSwap(p, p+1) {
				n := copy(buf, cell[:s.n])
				s.seq.Store(p + q.mask + 1)
				return n, nil
			}
		case d < 0: // not yet written: empty
			if err := q.wait(ctx, looks); err != nil {
				return 0, err
			}
			looks++
		}
		p = q.out.Load()
	}
}
