package history_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestW05_RedactionOnTheWayOut(t *testing.T) {
	t.Parallel()
	cases := []struct{ raw, want string }{
		{`{"executionId":"x","b":1,"a":[true,null]}`, `{"executionId":"x","b":1,"a":[true,null]}`},
		{`{"token":"abc"}`, `{"token":"[REDACTED]"}`},
		{`{"b":{"apiKey":{"deep":[1,"}"]}},"PassWord":7,"a":1}`, `{"b":{"apiKey":"[REDACTED]"},"PassWord":"[REDACTED]","a":1}`},
		{`[{"secret":null},{"secret":false},{"x":"secret"}]`, `[{"secret":"[REDACTED]"},{"secret":"[REDACTED]"},{"x":"secret"}]`},
		{`{"api_key":1,"tokens":2,"client_secret":3,"access_token":4,"authorization":5,"passwd":6}`,
			`{"api_key":"[REDACTED]","tokens":2,"client_secret":"[REDACTED]","access_token":"[REDACTED]","authorization":"[REDACTED]","passwd":"[REDACTED]"}`},
		{` { "to\u006ben" : -1.5e+3 , "n" : 1.50 } `, ` { "to\u006ben" : "[REDACTED]" , "n" : 1.50 } `},
		{`{"a\\\"":"\\","token":"\"}"}`, `{"a\\\"":"\\","token":"[REDACTED]"}`},
		{`{}`, `{}`}, {`[]`, `[]`}, {`"token"`, `"token"`}, {`3`, `3`},
		{`{"token":`, `"[REDACTED]"`},
		{``, `"[REDACTED]"`},
	}
	for _, c := range cases {
		if got := string(history.DefaultRedaction().Text([]byte(c.raw))); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.raw, got, c.want)
		}
		v, err := jsonvalue.Decode([]byte(c.raw))
		if err != nil {
			continue
		}
		before := string(jsonvalue.Canonical(v))
		want, _ := jsonvalue.Decode([]byte(c.want))
		if got := history.RedactValue(v); !reflect.DeepEqual(got, want) {
			t.Errorf("value of %s: got %v, want %v", c.raw, got, want)
		}
		if after := string(jsonvalue.Canonical(v)); after != before {
			t.Errorf("RedactValue changed %s to %s", before, after)
		}
	}
}

func TestRedactionByOtherNames(t *testing.T) {
	t.Parallel()
	const raw = `{"token":1,"Iban":2,"nested":[{"iban":3}]}`
	if got, want := string(history.NewRedaction("IBAN").Text([]byte(raw))), `{"token":1,"Iban":"[REDACTED]","nested":[{"iban":"[REDACTED]"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(history.Redaction{}.Text([]byte(raw))); got != raw {
		t.Errorf("the zero value hides: %s", got)
	}
}

// TestNamesOfSecretsInAnySpelling: the names that well-known tools hide, and none that only looks like one.
func TestNamesOfSecretsInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"api_key", "apiKey", "APIKey", "API-KEY", "apikey", "x-api-key", "openaiApiKey2", "access_token", "accessToken", "ACCESSTOKEN", "authorization",
		"Proxy-Authorization", "Set-Cookie", "cookie", "passwd", "db.password", "userPassword", "password_hash", "secret", "secretKey", "aws_secret_access_key",
		"client_secret", "private_key", "privateKeyPem", "refreshToken", "github_token", "idToken", "signingKey", "credentials", "passphrase", "PWD", "jwt",
	} {
		if got := history.RedactValue(map[string]any{name: 1}).(map[string]any)[name]; got != history.Redacted {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"", "key", "idempotencyKey", "tokens", "total_tokens", "promptTokens", "token_count", "tokenizer", "secretary", "compass", "passwordless", "author", "keyboard", "monkey", "café",
	} {
		if got := history.RedactValue(map[string]any{name: 1}).(map[string]any)[name]; got != 1 {
			t.Errorf("%s is hidden", name)
		}
	}
}

// TestSecretsAreHiddenByValue: in texts and names at any depth, as JSON spells them too, and never in what only looks like one.
func TestSecretsAreHiddenByValue(t *testing.T) {
	t.Parallel()
	r := history.DefaultRedaction().WithNames("iban").WithMask(func(text string) string {
		return strings.NewReplacer("12345678", "[REDACTED]", `a"b/é\n`, "[REDACTED]").Replace(text)
	})
	const raw = `{"n":12345678, "s" : "is 12345678.", "12345678x":[ "a\"b\/\u00e9\\n" ],"IBAN":{"12345678":1},"t":"ok"}`
	const want = `{"n":12345678, "s" : "is [REDACTED].", "[REDACTED]x":[ "[REDACTED]" ],"IBAN":"[REDACTED]","t":"ok"}`
	if got := string(r.Text([]byte(raw))); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	v, _ := jsonvalue.Decode([]byte(raw))
	shown, _ := jsonvalue.Decode([]byte(want))
	if got := r.Value(v); !reflect.DeepEqual(got, shown) {
		t.Errorf("got %v, want %v", got, shown)
	}
}

// TestManyNamesOfFields: which names are hidden does not depend on how many were seen before, nor on their spelling in JSON.
func TestManyNamesOfFields(t *testing.T) {
	t.Parallel()
	r := history.DefaultRedaction().WithNames("iban")
	for i := range 3000 {
		name := fmt.Sprintf("field%d_", i)
		text := fmt.Sprintf(`{%[1]q:"a",%[2]q:"b","\u%04[4]x%[3]s":"c","%[1]sib\u0061n":[1,{"x":"}"}],"é%[1]s":-1.5e3}`, name, name+"token", name[1:], name[0])
		want := fmt.Sprintf(`{%[1]q:"a",%[2]q:"[REDACTED]","\u%04[4]x%[3]s":"c","%[1]sib\u0061n":"[REDACTED]","é%[1]s":-1.5e3}`, name, name+"token", name[1:], name[0])
		for range 2 {
			if got := string(r.Text([]byte(text))); got != want {
				t.Fatalf("got %s\nwant %s", got, want)
			}
			if got := r.Value(map[string]any{name + "token": 1, name: 2}); !reflect.DeepEqual(got, map[string]any{name + "token": history.Redacted, name: 2}) {
				t.Fatalf("value %v", got)
			}
		}
	}
}

// FuzzRedact: the two ways to redact agree, and the text stays JSON.
func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"token":{"a":[1,2]},"b":"x"}`))
	f.Add([]byte(` [ { "pass\u0077ord" : "" } , -0.0 ] `))
	f.Add([]byte("{\"secret\"\t:\n[]}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := history.DefaultRedaction().Text(raw)
		if !json.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		v, err := jsonvalue.Decode(raw)
		if err != nil || !json.Valid(raw) {
			return
		}
		shown, err := jsonvalue.Decode(got)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonvalue.Equal(shown, history.RedactValue(v)) {
			t.Fatalf("%q: text gives %q, value %v", raw, got, history.RedactValue(v))
		}
	})
}
