package cli

import (
	"fmt"
	"strings"
)

// excerptWidth is how much of a long line an excerpt shows.
const excerptWidth = 100

// excerpt returns the source line of a finding with a caret under the column, each line indented; "" if the place is
// unknown. Tabs become spaces, so that the caret stands where it should.
func excerpt(text []byte, line, column int) string {
	if line < 1 || column < 1 {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if line > len(lines) {
		return ""
	}
	source := []rune(strings.TrimRight(lines[line-1], "\r"))
	for i, r := range source {
		if r < ' ' || r == 0x7f {
			source[i] = ' '
		}
	}
	at := min(column-1, len(source))
	from := 0
	if at > excerptWidth*3/4 {
		from = at - excerptWidth/2
	}
	shown := source[from:min(len(source), from+excerptWidth)]
	number := fmt.Sprint(line)
	gutter := strings.Repeat(" ", len(number))
	return fmt.Sprintf("  %s | %s\n  %s | %s^\n", number, string(shown), gutter, strings.Repeat(" ", at-from))
}
