package problem_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc… (4 bytes)"},
		{"abü", 3, "ab… (4 bytes)"},
		{"€uro", 2, "… (6 bytes)"},
	} {
		if got := problem.Excerpt(c.text, c.most); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q, %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestAMessageQuotesLittle holds that what a caller sent comes back cut where it is quoted, and nothing else is cut.
func TestAMessageQuotesLittle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	cut := `"` + long[:problem.MaxQuoted] + `… (1000 bytes)"`
	for _, c := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%q", []any{"short"}, `"short"`},
		{"node %q, not %q", []any{"a", long}, `node "a", not ` + cut},
		{"100 %% of %d: %-4q, %s, %v", []any{7, long, long, long}, "100 % of 7: " + cut + ", " + long + ", " + long},
		{"%[1]q", []any{long}, `"` + long + `"`},
		{"%q", []any{problem.Code("C")}, `"C"`},
	} {
		given := fmt.Sprint(c.args...)
		if got := problem.New(problem.ValidationError, c.format, c.args...).Message; got != c.want {
			t.Errorf("%s: %s", c.format, got)
		}
		if fmt.Sprint(c.args...) != given {
			t.Errorf("%s: the caller's arguments were changed", c.format)
		}
	}
}

// FuzzFormat holds that but for long texts Format is fmt.Sprintf.
func FuzzFormat(f *testing.F) {
	for _, format := range []string{"%q %d", "%", "%%q", "%*q", "%[2]q", "%-5.2q|%s", "%!q", "%é %q"} {
		f.Add(format, "text", 3)
	}
	f.Fuzz(func(t *testing.T, format, text string, n int) {
		if len(text) > problem.MaxQuoted || strings.Contains(format, "*") {
			return // cut, and a star takes an argument of its own
		}
		if got, want := problem.Format(format, text, n), fmt.Sprintf(format, text, n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text         string
		most         int
		bytes, runes string
	}{
		{"", 0, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "abc…", "abc…"}, {"aäb", 2, "a…", "aä…"}, {"äöü", 3, "ä…", "äöü"}, {"a", 0, "…", "…"},
	} {
		if got := problem.Clip(tt.text, tt.most); got != tt.bytes {
			t.Errorf("%q to %d bytes: %q, want %q", tt.text, tt.most, got, tt.bytes)
		}
		if got := problem.ClipRunes(tt.text, tt.most); got != tt.runes {
			t.Errorf("%q to %d characters: %q, want %q", tt.text, tt.most, got, tt.runes)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names   []string
		or, and string
	}{
		{nil, "", ""}, {[]string{"a"}, "a", "a"}, {[]string{"a", "b"}, "a or b", "a and b"}, {[]string{"a", "b", "c"}, "a, b or c", "a, b and c"},
	} {
		if or, and := problem.OrList(tt.names), problem.AndList(tt.names); or != tt.or || and != tt.and {
			t.Errorf("%v: %q, %q", tt.names, or, and)
		}
	}
}
