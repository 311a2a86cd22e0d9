package jsonvalue_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	// Spec: execution, 9.4.
	want := []string{"9", "10", "4294967294", "", "-1", "01", "1.5", "4294967295", "A", "_", "a", "b", "é", "𝄞", "\uE000", "\uFFFF"}
	m := map[string]any{}
	for _, name := range want {
		m[name] = nil
	}
	if got := jsonvalue.Keys(m); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKeysAgainstUTF16 compares with an order that is computed as the protocol words it.
func TestKeysAgainstUTF16(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab0z\u007F\u0080é\u07FF\u0800\uD7FF\uE000\uEFFF\uFFFD\uFFFF\U00010000😀\U0010FFFF")
	for range 200 {
		m := map[string]any{}
		for range 20 {
			var b strings.Builder
			b.WriteByte('x') // no index
			for range random.IntN(4) {
				b.WriteRune(alphabet[random.IntN(len(alphabet))])
			}
			m[b.String()] = nil
		}
		got := jsonvalue.Keys(m)
		slow := slices.Clone(got)
		slices.SortFunc(slow, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		if !slices.Equal(got, slow) {
			t.Fatalf("%q, want %q", got, slow)
		}
	}
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                             `""`,
		"1234567\"":                    `"1234567\""`,
		"12345678\\90":                 `"12345678\\90"`,
		"\x00\x1f\x7f":                 `"\u0000\u001f` + "\x7f" + `"`,
		"\b\t\n\f\r\v":                 `"\b\t\n\f\r\u000b"`,
		"</é\u2028😀>&":                 `"</é` + "\u2028" + `😀>&"`,
		"abcdefgh\xffijklmnop\xc3":     `"abcdefgh` + "\uFFFD" + `ijklmnop` + "\uFFFD" + `"`,
		"\uFFFD stays":                 "\"\uFFFD stays\"",
		strings.Repeat("0123456\n", 3): `"` + strings.Repeat(`0123456\n`, 3) + `"`,
	} {
		if got := string(jsonvalue.AppendString(nil, in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if n := jsonvalue.Size(in, 0); n != len(want) {
			t.Errorf("%q: size %d, want %d", in, n, len(want))
		}
	}
	// Every ASCII character at every place of a word.
	for c := range byte(0x80) {
		for at := range 17 {
			in := strings.Repeat("x", at) + string(rune(c)) + strings.Repeat("y", 16-at)
			text := jsonvalue.AppendString(nil, in)
			back, err := jsonvalue.Decode(text)
			if err != nil || back != in {
				t.Fatalf("%q at %d: %s: %v", c, at, text, err)
			}
		}
	}
}
