package backtrack_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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
	if _, err := backtrack.Compile(strings.Repeat("(", backtrack.MaxPattern+1), backtrack.Go); err == nil {
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

// TestStepsBoundTheTime searches with random expressions, and with those known to be dangerous: no search takes more than its steps say.
func TestStepsBoundTheTime(t *testing.T) {
	t.Parallel()
	var patterns []string
	patterns = append(patterns, `(?:a+)+(?!a)c`, `(?:a|a)*(?=b)c`, `(?:a|ab)*(?=c)`, `(a*)*\1c`, `(?:a?){30}a{30}(?=c)`, `(?=a*a*a*b)c`, `(?<=(?:a+)+c)b`,
		`(?:a*b?)*(?!a|b)c`, `(a+)(a+)\1\2c`, `(?:.*a){12}(?=c)`, `(?:a+?)+?(?=c)`, `(?>a+)+(?=c)`, `(?:(?:a{1,3}){1,3}){1,3}(?=c)`,
		`(?<!$(?:a|$)+)(?=c)`, `(?<=(?:ab)+x)c`)
	rng := rand.New(rand.NewPCG(1, 2))
	var random func(depth int) string
	random = func(depth int) string {
		atoms := []string{"a", "b", ".", "[ab]", `\w`, `\1`, "$"}
		if depth == 0 {
			return atoms[rng.IntN(len(atoms))]
		}
		a, b := random(depth-1), random(depth-1)
		switch rng.IntN(8) {
		case 0, 1:
			return a + b
		case 2:
			return "(?:" + a + "|" + b + ")"
		case 3:
			return "(" + a + b + ")" + []string{"*", "+", "?", "{2,5}", "*?"}[rng.IntN(5)]
		case 4:
			return "(?:" + a + ")" + []string{"*", "+", "{1,9}"}[rng.IntN(3)]
		case 5:
			return "(?=" + a + ")" + b
		case 6:
			return "(?<!" + a + ")" + b
		default:
			return a + "(?>" + b + ")"
		}
	}
	for range 3000 {
		patterns = append(patterns, "(a)?"+random(4)+"(?=c)")
	}
	const most = 2_000_000
	tried, worst := 0, 0.0
	for _, text := range patterns {
		p, err := backtrack.Compile(text, backtrack.Go)
		if err != nil {
			continue
		}
		for _, in := range []string{strings.Repeat("a", 24), strings.Repeat("ab", 12), strings.Repeat("a", 400), strings.Repeat("aab ", 60)} {
			steps := p.Steps([]rune(in), most)
			if steps > most {
				continue
			}
			tried++
			// The least of some tries: the machine may be busy. Two microseconds are a hundred times what a step takes.
			took, allowed := time.Duration(math.MaxInt64), 20*time.Millisecond+2*time.Duration(steps)*time.Microsecond
			for try := 0; try < 10 && took > allowed; try++ {
				began := time.Now()
				p.Find([]rune(in), true)
				took = min(took, time.Since(began))
			}
			if worst = max(worst, float64(took.Nanoseconds())/float64(steps+1000)); took > allowed {
				t.Errorf("%s over %q: %d steps, took %v", text, in, steps, took)
			}
		}
	}
	t.Logf("%d searches, at most %.0f ns a step", tried, worst)
	if tried < 1000 {
		t.Errorf("only %d searches are within the bound", tried)
	}
}
