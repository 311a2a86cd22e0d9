package shellword_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

func TestLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		words []string
		want  string
	}{
		{[]string{"resume", "a1"}, "resume a1"},
		{[]string{"--payload", `{"a":1}`}, `--payload '{"a":1}'`},
		{[]string{"it's"}, `'it'\''s'`},
		{[]string{"", "a b", "$x", "~", "#x", "a;b", "é"}, `'' 'a b' '$x' '~' '#x' 'a;b' 'é'`},
		{[]string{"/tmp/a-b_c.db", "k=v", "p:sub:n#2"}, "/tmp/a-b_c.db k=v p:sub:n#2"},
	}
	for _, tt := range tests {
		if got := shellword.Line(tt.words...); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.words, got, tt.want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	resume := []string{"engine", "resume"}
	for operand, want := range map[string]string{
		"r1": "engine resume r1 ask --payload -1", "-x": "engine resume --payload -1 -- -x ask", "--": "engine resume --payload -1 -- -- ask",
	} {
		if got := shellword.Command(resume, []string{operand, "ask"}, "--payload", "-1"); got != want {
			t.Errorf("%q: got %s, want %s", operand, got, want)
		}
	}
}
