package childprocess

import (
	"slices"
	"strings"
	"testing"
)

// A secret is masked wherever a line is long enough to be read in pieces, and where it spans lines itself.
func TestTailMasks(t *testing.T) {
	t.Parallel()
	const secret = "sentinel-0123456789"
	key := "-----BEGIN KEY-----\nsentinel-0123456789abcdef\nsentinel-fedcba9876543210\n-----END KEY-----\n"
	for before := MaxLine - len(secret) - 2; before <= MaxLine+2; before++ {
		var lines []string
		tail := Tail{Secret: NewScrubber([]string{secret}), Line: func(line string) { lines = append(lines, line) }}
		tail.readFrom(strings.NewReader(strings.Repeat("x", before) + secret + strings.Repeat("y", 50) + "\nnext\n"))
		if got := tail.String(); strings.Contains(got, "sentinel") || strings.Contains(got, "456789") || !strings.HasSuffix(got, mask+strings.Repeat("y", 50)+"\nnext") {
			t.Fatalf("after %d bytes: %q", before, got[len(got)-100:])
		}
		if len(lines) != 2 || lines[1] != "next" || strings.Contains(lines[0], "sentinel") {
			t.Fatalf("after %d bytes: %d lines", before, len(lines))
		}
	}
	var lines []string
	tail := Tail{Secret: NewScrubber([]string{key}), Line: func(line string) { lines = append(lines, line) }}
	tail.readFrom(strings.NewReader(key + "end"))
	if all := tail.String() + strings.Join(lines, "\n"); strings.Contains(all, "sentinel") {
		t.Error(all)
	}
	long := "<" + strings.Repeat("0123456789abcdef", MaxLine/8) + ">" // longer than what is read at once
	tail = Tail{Secret: NewScrubber([]string{long})}
	tail.readFrom(strings.NewReader("a " + long + long + " b\n"))
	if got := tail.String(); got != "a "+mask+mask+" b" {
		t.Errorf("%d bytes: %.60q", len(got), got)
	}
}

func TestScrubberSpellings(t *testing.T) {
	t.Parallel()
	s := NewScrubber([]string{"a/b\"c<d"})
	for _, text := range []string{`a/b"c<d`, `a\/b"c<d`, `a/b\"c\u003cd`} {
		if got := s.Scrub(text); got != mask {
			t.Errorf("%s: %s", text, got)
		}
	}
	if !slices.IsSortedFunc(s, func(a, b string) int { return len(b) - len(a) }) {
		t.Error("the longest is not first")
	}
}
