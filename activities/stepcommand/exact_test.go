package stepcommand

import (
	"strings"
	"testing"
)

// A program's output whose integers or texts would be recorded as others is refused with its place.
func TestOutputsThatWouldChangeAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"output":{"id":1234567890123456789}}`: `the integer 1234567890123456789 cannot be kept exactly; send it as a text (at "/output/id")`,
		`{"output":["` + "\xff" + `"]}`:         `the string is not valid UTF-8 (at "/output/0")`,
		`{"output":{"s":"\udead"}}`:             `(at "/output/s")`,
		`{"output":9007199254740992}`:           "",
	} {
		if _, fault := parse([]byte(text)); want == "" && fault != "" || !strings.Contains(fault, want) {
			t.Errorf("%q: %q", text, fault)
		}
	}
}
