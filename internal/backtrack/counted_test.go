package backtrack

import (
	"bufio"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// counted counts the operations of the engine in what is done: in its debugging mode it prints each of them. So it is no test for
// running beside others.
func counted(t *testing.T, do func() error) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	log.SetOutput(w)
	count := make(chan int)
	go func() {
		n, line := 0, bufio.NewReaderSize(r, 1<<16)
		for {
			part, prefix, err := line.ReadLine()
			if err != nil {
				count <- n
				return
			}
			if strings.HasPrefix(string(part[:min(len(part), 5)]), "Text:") {
				n++
			}
			for prefix && err == nil {
				_, prefix, err = line.ReadLine()
			}
		}
	}()
	err = do()
	os.Stdout = stdout
	log.SetOutput(os.Stderr)
	_ = w.Close()
	n := <-count
	_ = r.Close()
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestStepsBoundTheOperations searches with random expressions, and with those known to be dangerous: no search takes more operations
// than its steps say.
func TestStepsBoundTheOperations(t *testing.T) {
	patterns := []string{
		`(?:a+)+(?!a)c`, `(?:a|a)*(?=b)c`, `(?:a|ab)*(?=c)`, `(a*)*\1c`, `(?:a?){9}a{9}(?=c)`, `(?=a*a*a*b)c`, `(?<=(?:a+)+c)b`, `(?:a*b?)*(?!a|b)c`,
		`(a+)(a+)\1\2c`, `(?:.*a){4}(?=c)`, `(?:a+?)+?(?=c)`, `(?>a+)+(?=c)`, `(?:(?:a{1,3}){1,3}){1,3}(?=c)`, `(?<!$(?:a|$)+)(?=c)`, `(?<=(?:ab)+x)c`,
		// the last round of a repeat may read nothing
		`(?:(?:$|\z){7})*(?=c)`, `(?:(?:$|\z){7})?(?=c)`, `(?:(?:$|\z|(?!x)){4})?(?=c)`, `(?:(?:\b|$|(?!x)){4})*?(?=c)`,
		`(a)?((?:(?:(?:(?:\B|a|)|\2|)){2,}){3}?(?:(?:a+?|\z){0,3}|(?<!b)a){0,3})*(?=c)`,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	atoms := []string{"a", "b", ".", "[ab]", `\w`, `\1`, "$", "^", `\b`, "", "a?", "b*", "a+?", "(?!b)", "ab", "[^a]", `\z`, "a{2,3}", `\p{L}`, "(?<=a)", "(?i:k)"}
	quantities := []string{"*", "+", "?", "*?", "??", "{2}", "{2,5}", "{0,3}?", "{2,}"}
	var random func(depth int) string
	random = func(depth int) string {
		if depth == 0 {
			return atoms[rng.IntN(len(atoms))]
		}
		a, b, q := random(depth-1), random(depth-1), quantities[rng.IntN(len(quantities))]
		switch rng.IntN(8) {
		case 0:
			return a + b
		case 1:
			return "(?:" + a + "|" + b + "|)"
		case 2:
			return "(" + a + b + ")" + q
		case 3:
			return "(?:" + a + "|" + b + ")" + q
		case 4:
			return "(?=" + a + ")" + b
		case 5:
			return "(?<!" + a + ")" + b
		case 6:
			return "(?<=" + a + ")" + q + b
		default:
			return a + "(?>" + b + ")"
		}
	}
	for range 120 {
		patterns = append(patterns, "(a)?"+random(1+rng.IntN(4))+"(?=c)")
	}
	tried, worst := 0, 0.0
	for i, text := range patterns {
		d := Dialect(i % 2)
		p, err := Compile(text, d)
		if err != nil {
			continue
		}
		var re *regexp2.Regexp
		counted(t, func() (err error) {
			re, err = regexp2.Compile(text, options(d), regexp2.OptionMaintainCaptureOrder(), regexp2.OptionDebug())
			return err
		})
		re.MatchTimeout = time.Minute // nothing is measured: a wrong bound is to fail the test, not to hang it
		for _, in := range []string{"", "aaaaaaa", "abababab", "aab aab ", "zzk", "aa\naé"} {
			const most = 20_000
			steps := p.Steps([]rune(in), most)
			if steps > most {
				continue
			}
			tried++
			n := counted(t, func() error {
				return re.FindRunesMatches([]rune(in), 0, func(regexp2.MatchView) bool { return true })
			})
			worst = max(worst, float64(n)/float64(steps))
			if n > steps {
				t.Errorf("%s over %q: %d steps, but %d operations", text, in, steps, n)
			}
		}
	}
	t.Logf("%d searches, at most %.2f operations a step", tried, worst)
	if tried < 250 {
		t.Errorf("only %d searches are within the bound", tried)
	}
}
