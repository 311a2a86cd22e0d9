package definition

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/expr"
)

// regexDifference returns the fault of a regular expression in a jq program, or a difference between engines (spec: definition, 14.3);
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
