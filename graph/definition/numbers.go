package definition

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// checkNumbers warns of numbers that become another value as doubles (spec: definition, 14.4.4).
func (c *compiler) checkNumbers(n *jsonvalue.Node, at *path) {
	switch n.Kind {
	case jsonvalue.Number:
		read := string(jsonvalue.Canonical(n.Num))
		if n.Text != read && decimal(n.Text) != decimal(read) {
			c.warn(problem.NumberPrecision, n, at, nil,
				fmt.Sprintf("the number %s becomes %s, because numbers are doubles", clip(n.Text), read),
				"write it as a text if its exact value matters")
		}
	case jsonvalue.Array:
		for i, e := range n.Elements {
			if e.Kind >= jsonvalue.Number {
				c.checkNumbers(e, at.element(i))
			}
		}
	case jsonvalue.Object:
		for _, m := range n.Members {
			if m.Value.Kind >= jsonvalue.Number {
				c.checkNumbers(m.Value, at.member(m.Name))
			}
		}
	}
}

// decimal returns a form of a JSON number that is the same for all spellings of one value: sign, digits without zeros at
// either end, and the power of ten.
func decimal(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		mantissa, sign = rest, "-"
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	trimmed := strings.TrimRight(digits, "0")
	power := len(digits) - len(trimmed) - len(fraction)
	return sign + trimmed + "e" + addDecimal(exponent, power)
}

// addDecimal adds a small number to an exponent, which may be longer than an int; such a one is far from any double and
// is left as it is.
func addDecimal(exponent string, n int) string {
	if len(exponent) > 9 {
		return exponent
	}
	value, err := strconv.Atoi(exponent)
	if err != nil {
		value = 0 // no exponent was written
	}
	return strconv.Itoa(value + n)
}
