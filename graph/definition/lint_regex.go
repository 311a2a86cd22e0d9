package definition

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/expr"
)

// regexDifference says what is wrong with a regular expression of a jq program, or what engines differ over (spec: definition, 14.3);
// both texts are empty where they agree.
func regexDifference(regex string) (message, hint string) {
	switch {
	case !expr.ValidRegexp(regex):
		return fmt.Sprintf("%q is not a regular expression", clip(regex)), "check brackets, repeats and escapes"
	case strings.HasPrefix(regex, "(?i)") && !isASCII(regex):
		return fmt.Sprintf("in the regular expression %q, engines differ over letter case beyond ASCII", clip(regex)), ""
	default:
		return "", ""
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
