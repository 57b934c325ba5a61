package serverlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const ms = int64(time.Millisecond)

// A scene is a log written by a test, and a follower that looks when the test says so.
type scene struct {
	*testing.T
	at   int64 // ms
	path string
	f    *Follower
}

func stage(t *testing.T, before string, logs ...string) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{T: t, path: filepath.Join(dir, "server-1")}
	if before != "" {
		s.write(s.path, before)
	}
	var all []Log
	for i, name := range append([]string{"server-1"}, logs...) {
		all = append(all, Log{Process: name, Node: i + 1, Path: filepath.Join(dir, name)})
	}
	s.f = follow(func() int64 { return s.at * ms }, all)
	t.Cleanup(s.f.release)
	return s
}

func (s *scene) write(path, text string) {
	s.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.Fatal(err)
	}
}

// say makes the server write a line and weir look at an instant, in ms.
func (s *scene) say(at int64, text string) {
	s.Helper()
	s.write(s.path, text)
	s.at = at
	s.f.look()
}

// read returns the excerpts of windows, in ms.
func (s *scene) read(windows ...[2]int64) []Excerpt {
	var all []Window
	for _, w := range windows {
		all = append(all, Window{w[0] * ms, w[1] * ms})
	}
	return s.f.Read(all, nil)
}

// texts formats lines as "at text", at in ms.
func texts(x Excerpt) (all []string) {
	for _, l := range x.Lines {
		all = append(all, fmt.Sprintf("%d %s", l.At/ms, l.Text))
	}
	return all
}

func (s *scene) expect(x Excerpt, more uint64, want ...string) {
	s.Helper()
	if d := cmp.Diff(want, texts(x)); d != "" || x.More != more || x.AtLeast {
		s.Errorf("more %d, want %d; (-want +got):\n%s", x.More, more, d)
	}
}

func TestLineBelongsToWindowWhenSeen(t *testing.T) {
	s := stage(t, "old\nolder, and ")
	s.say(100, "still written\na\n")
	s.say(200, "b\nc, the be")
	s.say(300, "")
	s.say(400, "ginning\n\n \nd\n")
	s.say(500, "e without an end")
	got := s.read([2]int64{0, 99}, [2]int64{0, 100}, [2]int64{101, 399}, [2]int64{400, 499}, [2]int64{500, 500}, [2]int64{501, 9999})
	s.expect(got[0], 0)
	s.expect(got[1], 0, "100 older, and still written", "100 a")
	s.expect(got[2], 0, "200 b")
	s.expect(got[3], 0, "400 c, the beginning", "400 d")
	s.expect(got[4], 0, "500 e without an end")
	s.expect(got[5], 0)
}

func TestFirstLinesPerServerAreKept(t *testing.T) {
	s := stage(t, "", "server-2", "server-3", "server-4")
	second := filepath.Join(filepath.Dir(s.path), "server-2")
	for i := range 7 {
		s.write(second, fmt.Sprintf("two %c\n", 'a'+i))
	}
	s.say(100, "")
	s.say(200, strings.Repeat("one at 12:34\none at 12:35\nelected\n", 3)+"a\nb\nc\nd\n")
	got := s.read([2]int64{0, 300})[0]
	s.expect(got, 2+8, "100 two a", "100 two b", "100 two c", "100 two d", "100 two e", "200 one at 12:34", "200 elected", "200 a", "200 b", "200 c")
	if l := got.Lines[0]; l.Process != "server-2" || l.Node != 2 {
		t.Errorf("%+v", l)
	}
	for _, name := range []string{"server-3", "server-4"} {
		s.write(filepath.Join(filepath.Dir(s.path), name), "v\nw\nx\ny\nz\n")
	}
	s.say(300, "")
	got = s.read([2]int64{0, 300})[0]
	of := map[string]int{}
	for _, l := range got.Lines {
		of[l.Process]++
	}
	if d := cmp.Diff(map[string]int{"server-1": 4, "server-2": 4, "server-3": 4, "server-4": 3}, of); d != "" || got.More != 10+5 {
		t.Errorf("more %d (-want +got):\n%s", got.More, d)
	}
}

func TestTruncatedLogIsFollowed(t *testing.T) {
	s := stage(t, "before\n")
	s.say(100, "first\n")
	s.write(s.path, "last of the first\n")
	if err := os.Rename(s.path, s.path+".1"); err != nil {
		t.Fatal(err)
	}
	s.say(200, "second\n")
	s.write(s.path+".1", "late\n") // no longer followed
	if err := os.Truncate(s.path, 0); err != nil {
		t.Fatal(err)
	}
	s.say(300, "cut\n")
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	s.at = 400
	s.f.look()
	s.say(500, "third\n")
	s.expect(s.read([2]int64{0, 500})[0], 0, "100 first", "200 last of the first", "300 cut", "500 third")
	for i := range 20 {
		if err := os.Remove(s.path); err != nil {
			t.Fatal(err)
		}
		s.say(600+int64(i), "again\n")
	}
	if n := len(s.f.logs[0].files); n != mostFormer+1 {
		t.Errorf("%d files are open", n)
	}
}

func TestLaterLogIsReadFromStart(t *testing.T) {
	s := stage(t, "")
	s.at = 100
	s.f.look()
	s.say(200, "hello\n")
	s.expect(s.read([2]int64{0, 500})[0], 0, "200 hello")
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	s := stage(t, "")
	elsewhere := filepath.Join(t.TempDir(), "shadow")
	s.write(elsewhere, "root\n")
	if err := os.Symlink(elsewhere, s.path); err != nil {
		t.Fatal(err)
	}
	s.at = 100
	s.f.look()
	s.expect(s.read([2]int64{0, 500})[0], 0)
}

func TestAHostileLogIsBounded(t *testing.T) {
	s := stage(t, "")
	s.say(100, strings.Repeat("x", 1<<20)+"\nafter\n")
	got := s.read([2]int64{0, 500})[0]
	if len(got.Lines) != 2 || len(got.Lines[0].Text) != longest || got.Lines[1].Text != "after" {
		t.Errorf("%d lines of a line of 1 MiB: %q", len(got.Lines), texts(got))
	}
	s.say(200, strings.Repeat("z", 1<<20))
	s.say(300, "\n")
	if got := s.read([2]int64{201, 500})[0]; len(got.Lines) != 1 || got.More != 0 {
		t.Errorf("the end of a line of 1 MiB: %q", texts(got))
	}
	s.say(400, strings.Repeat("line\n", 1_000_000))
	s.expect(s.read([2]int64{301, 500})[0], 1e6-1, "400 line")

	var windows [][2]int64 // with more content than is read
	s.say(600, strings.Repeat(strings.Repeat("y", 1<<20)+"\n", 5))
	for range mostRead/(5<<20) + 2 {
		windows = append(windows, [2]int64{501, 700})
	}
	all := s.read(windows...)
	if last := all[len(all)-1]; !last.AtLeast || len(last.Lines) > 0 || all[0].AtLeast {
		t.Errorf("%+v", last)
	}
}

func TestMarksAreBounded(t *testing.T) {
	s := stage(t, "")
	for i := range int64(3 * mostMarks) {
		s.say((i+1)*100, fmt.Sprintf("%d\n", (i+1)*100))
	}
	g := s.f.logs[0].files[0]
	if len(g.mark) >= mostMarks || g.step != 4*int64(Every) {
		t.Fatalf("%d marks, %d ns apart", len(g.mark), g.step)
	}
	for from := int64(100); from < 300*mostMarks; from += 12_345 {
		for _, l := range s.read([2]int64{from, from + 1000})[0].Lines {
			var wrote int64
			if _, err := fmt.Sscan(l.Text, &wrote); err != nil {
				t.Fatal(err)
			}
			if late := l.At/ms - wrote; late < 0 || late > 400 {
				t.Fatalf("a line of %d ms is told at %d ms", wrote, l.At/ms)
			}
		}
	}
}

func TestLinesAreCleaned(t *testing.T) {
	clean := cleaner([]string{"s3cret!", ""})
	for in, want := range map[string]string{
		"  plain \r\n":                       "plain",
		"\x1b[31mred\x1b[0m\x1b]0;title\x07": "red",
		"a\tb\x00c\x7fd\u202ee":              "a b c d e",
		"\xff\xfe":                           "\ufffd",
		"with s3cret! in it":                 "with *** in it",
		"nats://me:pw@host:4222 and more":    "nats://***@host:4222 and more",
		`{"password": "x y", "user": "u"}`:   `{"password": ***, "user": "u"}`,
		"ssl.keystore.password = null":       "ssl.keystore.password = ***",
		"<script>alert(1)</script>":          "<script>alert(1)</script>", // escaped where it is shown
		"\x1b[":                              "",
	} {
		if got := clean([]byte(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := clean([]byte(strings.Repeat("ä", 200))); len(got) > longest || !strings.HasSuffix(got, "ä...") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func FuzzLinesAreCleaned(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\x1b]0;x"))
	clean := cleaner([]string{"s3cret"})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := clean(b)
		if len(got) > longest || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
			t.Errorf("%q becomes %q", b, got)
		}
		if bytes.Contains([]byte(got), []byte("s3cret")) {
			t.Errorf("%q shows a secret: %q", b, got)
		}
	})
}

func TestAFollowerLooksByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := Follow(func() int64 { return int64(time.Since(began)) }, []Log{{Process: "server-1", Node: 1, Path: path}})
		defer f.Close()
		time.Sleep(250 * time.Millisecond)
		if err := os.WriteFile(path, []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		got := f.Read([]Window{{0, int64(time.Second)}}, nil)
		if len(got) != 1 || len(got[0].Lines) != 1 || got[0].Lines[0].At != 300*ms {
			t.Errorf("%+v", got)
		}
	})
	var none *Follower
	if none.Read([]Window{{0, 1}}, nil) != nil || Follow(nil, nil) != nil {
		t.Error("without logs there is something to tell")
	}
	none.Close()
}

// BenchmarkAlikeLines: a server repeats the same line with different numbers.
func BenchmarkAlikeLines(b *testing.B) {
	var left int64
	p := &reading{left: &left, clean: cleaner([]string{"hunter2"}), log: &Log{Process: "server-1"}, alike: map[string]bool{}, raw: map[string]bool{}}
	lines := make([][]byte, 1000)
	for i := range lines {
		lines[i] = fmt.Appendf(nil, "[%d] 2026/01/02 15:04:05.%06d [INF] 10.0.0.%d:%d - cid:%d - Client connection closed: Slow Consumer\n", i, i*i, i%250, 30000+i, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.add(lines[i%len(lines)], int64(i))
	}
	if len(p.lines) != 1 || p.more == 0 {
		b.Fatalf("%d lines, and %d more", len(p.lines), p.more)
	}
}

// TestAlikeLinesAreCountedAsBefore: lines skipped before cleaning count too, and lines that show
// nothing do not.
func TestAlikeLinesAreCountedAsBefore(t *testing.T) {
	var left int64
	p := &reading{left: &left, clean: cleaner([]string{"s1"}), log: &Log{}, alike: map[string]bool{}, raw: map[string]bool{}}
	for _, l := range []string{"a 1\n", "a 2\n", " \n", " \n", "\x1b[1ma 3\x1b[0m\n", "b s1\n", "b s2\n"} {
		p.add([]byte(l), 1)
	}
	var said []string
	for _, l := range p.lines {
		said = append(said, l.Text)
	}
	if d := cmp.Diff([]string{"a 1", "b ***"}, said); d != "" || p.more != 3 {
		t.Errorf("(-want +got):\n%s, and %d more, want 3", d, p.more)
	}
}
