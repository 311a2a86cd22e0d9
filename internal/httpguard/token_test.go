package httpguard_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/httpguard"
)

// TestTokensHaveNames: a list names the holder of each token, which stands there as it is or as a hash.
func TestTokensHaveNames(t *testing.T) {
	t.Parallel()
	const sha = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" // of "secret"
	var masked []string
	tokens, findings := httpguard.ParseTokens([]byte(`{"tokens":[{"name":"ci","token":"0123456789abcdef"},{"name":"eyes","sha256":"`+sha+`","readOnly":true}]}`), func(token string) { masked = append(masked, token) })
	if len(findings) > 0 || tokens.None() {
		t.Fatal(findings)
	}
	for secret, want := range map[string]httpguard.Caller{"0123456789abcdef": {Name: "ci"}, "secret": {Name: "eyes", ReadOnly: true}} {
		if got, found := tokens.Find(secret); !found || got != want {
			t.Errorf("%q: %+v, %v", secret, got, found)
		}
	}
	for _, secret := range []string{"", "0123456789abcde", "0123456789abcdef0", sha} {
		if got, found := tokens.Find(secret); found {
			t.Errorf("%q: %+v", secret, got)
		}
	}
	if !slices.Contains(masked, "0123456789abcdef") {
		t.Errorf("masks %q", masked)
	}
}

// TestTokenMistakes: one mistake gives one finding, and no finding shows a token.
func TestTokenMistakes(t *testing.T) {
	t.Parallel()
	const a = `{"name":"a","token":"0123456789abcdef"}`
	for text, want := range map[string]string{
		``: "", `{}`: "tokens", `{"tokens":[]}`: "", `{"tokens":[{"name":"a"}]}`: "either token or sha256",
		`{"tokens":[{"name":"a","token":"0123456789abcdef","sha256":"00"}]}`:           "",
		`{"tokens":[` + a + `,{"name":"a","token":"0123456789abcdee"}]}`:               `name "a" is used twice`,
		`{"tokens":[` + a + `,{"name":"b","token":"0123456789abcdef"}]}`:               `token of "b" is used twice`,
		`{"tokens":[{"name":"a","token":"short-secret"}]}`:                             "16 to 512",
		`{"tokens":[{"name":"a\nb","token":"0123456789abcdef"}]}`:                      "",
		`{"tokens":[{"name":"a","token":"0123456789abcdef","read_only":true}]}`:        "readOnly",
		`{"tokens":[{"name":"a","token":"0123456789abcdef"}],"tokens":[{"name":"b"}]}`: "",
		"two words": "",
	} {
		tokens, findings := httpguard.ParseTokens([]byte(text), func(string) {})
		said := fmt.Sprint(findings)
		if len(findings) == 0 || !tokens.None() || !strings.Contains(said, want) {
			t.Errorf("%s: %s, tokens: %v", text, said, !tokens.None())
		}
		if strings.Contains(said, "0123456789") || strings.Contains(said, "short-secret") {
			t.Errorf("%s shows a token: %s", text, said)
		}
	}
}

// readerToken is the token that the page uses for reading.
func readerToken(page string) string {
	_, rest, _ := strings.Cut(page, "\nREADER=")
	token, _, _ := strings.Cut(rest, "\n")
	return token
}

// TestTheFileOfThePage reads the list of docs/http-api.md.
func TestTheFileOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(rest, "```")
	tokens, findings := httpguard.ParseTokens([]byte(text), func(string) {})
	if got, found := tokens.Find(readerToken(string(page))); len(findings) > 0 || !found || got != (httpguard.Caller{Name: "dashboard", ReadOnly: true}) {
		t.Errorf("%+v, %v, %v", got, found, findings)
	}
}
