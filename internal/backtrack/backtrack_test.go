package backtrack_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/backtrack"
)

func compile(t *testing.T, text string) *backtrack.Pattern {
	t.Helper()
	p, err := backtrack.Compile(text, backtrack.Go)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, text, want string }{
		{`foo(?=bar)`, "foobar foo", "[[0 3]]"},
		{`(?<=é)b`, "éb", "[[1 2]]"},
		{`\b(?<w>\w+)\s+\k<w>\b`, "the the end", "[[0 7 0 3]]"},
		{`(a)|(?!a)(b)`, "ab", "[[0 1 0 1 -1 -1] [1 2 -1 -1 1 2]]"},
		{`x*(?=a|$)`, "xa", "[[0 1] [1 1] [2 2]]"},
		{`a{1,1500}`, strings.Repeat("a", 1501), "[[0 1500] [1500 1501]]"},
	} {
		p := compile(t, c.pattern)
		found, err := p.Find([]rune(c.text), true)
		if got := fmt.Sprint(found); err != nil || got != c.want {
			t.Errorf("%s over %q: %s, %v", c.pattern, c.text, got, err)
		}
	}
	if p := compile(t, `(a)(?<n>b)(c)(?=d)`); fmt.Sprintf("%q", p.Groups()) != `["" "" "n" ""]` {
		t.Errorf("groups %q", p.Groups())
	}
	if _, err := backtrack.Compile(strings.Repeat("a", backtrack.MaxPattern+1), backtrack.ECMAScript); err == nil {
		t.Error("an expression without bound compiles")
	}
}

// TestStepsOfOrdinaryExpressions: what people write is far below what a search may take.
func TestStepsOfOrdinaryExpressions(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("The quick brown fox, who is\tno dog, jumps over 12,345.67 lazy dogs.\n", 50)
	for _, c := range []struct {
		pattern, text string
		most          int
	}{
		{`^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,}$`, "Secret123456", 1000},
		{`^(?!.*--)[a-z0-9]+(?:-[a-z0-9]+)*$`, "a-name-of-some-length-1", 10_000},
		{`\b(\w+)\s+\1\b`, prose, 1_000_000},
		{`(?<=\d)(?=(?:\d{3})+$)`, "1234567890123456789", 100_000},
		{`"(?:\\.|[^"\\])*"(?!:)`, `{"a": "b\"c", "d": "` + strings.Repeat("x", 1000) + `"}`, 100_000_000},
		{`(?<![\w.])\d+(?:,\d{3})*(?![\w])`, prose, 10_000_000},
	} {
		if n := compile(t, c.pattern).Steps([]rune(c.text), math.MaxInt); n > c.most {
			t.Errorf("%s: %d steps, more than %d", c.pattern, n, c.most)
		}
	}
}

// TestNestedTooDeeply: the engine optimises a group once for each group around it and once for itself, which takes twice as long with
// each level. Such an expression is refused before it is compiled.
func TestNestedTooDeeply(t *testing.T) {
	t.Parallel()
	nested := func(open, end string, depth int) string {
		return strings.Repeat(open, depth) + "a" + strings.Repeat(end, depth)
	}
	for _, refused := range []string{
		nested("(?:ab|a", ")", 50), nested("(a", ")?", 2000), nested("(", ")", 4000), nested("[)](?:ab|a", ")", 50), nested(`\)(?:ab|a`, ")", 50),
		"(?x)" + nested("(?:ab|a#)\n", ")", 50), nested("(?#))(?:ab|a", ")", 50), nested("[])](?:ab|a", ")", 50), nested("[^])](?:ab|a", ")", 50),
		nested(`\Q)\E(?:ab|a`, ")", 50), nested("[[:alpha:])](?:ab|a", ")", 50), nested("[a-z-[)]](?:ab|a", ")", 50),
	} {
		for _, d := range []backtrack.Dialect{backtrack.Go, backtrack.ECMAScript} {
			if _, err := backtrack.Compile(refused, d); err == nil {
				t.Errorf("%.40s… compiles", refused)
			}
		}
	}
	for _, allowed := range []string{
		nested("(?:ab|a", ")", 8), nested(`\((?:ab|a`, ")", 8), nested("[(](?:ab|a", ")", 8), strings.Repeat("(?:a|(b|c))", 700),
	} {
		if _, err := backtrack.Compile(allowed, backtrack.Go); err != nil {
			t.Errorf("%.40s…: %v", allowed, err)
		}
	}
}

// TestStepsOfReading: what the bound itself takes, and what it takes to look up a character, is in the bound.
func TestStepsOfReading(t *testing.T) {
	t.Parallel()
	var text []rune
	for r := rune(0x400); len(text) < 10_000; r++ {
		text = append(text, r)
	}
	if n := compile(t, strings.Repeat("a", 8000)+"(?=b)").Steps(text, math.MaxInt); n < 8000*len(text) {
		t.Errorf("a long string: %d steps", n)
	}
	one, many := compile(t, `(?:[^\p{Greek}]b?)*(?=c)`), compile(t, `(?:[^\p{Greek}\p{Thai}\p{Han}\p{Khmer}\p{Lao}\p{Mongolian}\p{Runic}]b?)*(?=c)`)
	if few, more := one.Steps(text[:100], math.MaxInt), many.Steps(text[:100], math.MaxInt); more < few+few/2 {
		t.Errorf("%d steps with one class, %d with seven", few, more)
	}
}
