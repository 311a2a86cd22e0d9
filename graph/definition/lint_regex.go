package definition

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// regexDifference says how RE2 and Oniguruma, the two engines that jq programs meet, differ over a regular expression
// (spec: definition, 14.3); both texts are empty where they agree.
func regexDifference(regex string) (message, hint string) {
	if _, err := syntax.Parse(regex, syntax.Perl); err != nil {
		return fmt.Sprintf("the regular expression %q does not work here, where RE2 is the engine", clip(regex)),
			"RE2 has no look-around, no back-references and no repeats above 1000"
	}
	var parts, fixes []string
	for _, d := range regexDifferences {
		if d.found(regex) {
			parts = append(parts, d.what)
			fixes = append(fixes, d.fix)
		}
	}
	if len(parts) == 0 {
		return "", ""
	}
	return fmt.Sprintf("in the regular expression %q, engines differ over %s", clip(regex), problem.AndList(parts)), strings.Join(fixes, "; ")
}

var regexDifferences = []struct {
	what, fix string
	found     func(string) bool
}{
	{`\w beyond ASCII`, `write [A-Za-z0-9_] or [\p{L}\p{N}_]`, hasEscape("wW")},
	{`\d beyond ASCII`, `write [0-9] or \p{Nd}`, hasEscape("dD")},
	{`\s beyond ASCII`, `write [ \t\r\n]`, hasEscape("sS")},
	{`\b beyond ASCII`, `write what may stand beside the word`, hasEscape("bB")},
	{"[[:…:]] beyond ASCII", `write \p{L}, \p{Lu}, \p{Nd} or the like`, func(s string) bool { return strings.Contains(s, "[:") }},
	{"$ before a last line break", `write \z`, hasDollar},
	{"letter case beyond ASCII", "", func(s string) bool { return strings.HasPrefix(s, "(?i)") && !isASCII(s) }},
}

// hasEscape looks for a backslash before one of the letters.
func hasEscape(letters string) func(string) bool {
	return func(regex string) bool {
		for i := 0; i+1 < len(regex); i++ {
			if regex[i] == '\\' {
				if i++; strings.IndexByte(letters, regex[i]) >= 0 {
					return true
				}
			}
		}
		return false
	}
}

// hasDollar looks for a $ that is an anchor: neither escaped nor in a class.
func hasDollar(regex string) bool {
	inClass := false
	for i := 0; i < len(regex); i++ {
		switch c := regex[i]; {
		case c == '\\':
			i++
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '$' && !inClass:
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
