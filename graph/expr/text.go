package expr

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Functions that read or make texts.

func toString(m *meter, in any, _ []any) any {
	if s, ok := in.(string); ok {
		// Not for this, but for what the interpreter puts together of it where nothing else is charged.
		if !m.allocate(len(s)) {
			return m.exceeded
		}
		return s
	}
	if !m.deepTimes(in, textGrowth) {
		return m.exceeded
	}
	return text(in)
}

func toJSON(m *meter, in any, _ []any) any {
	if !m.deepTimes(in, textGrowth) {
		return m.exceeded
	}
	return text(in)
}

func text(v any) any {
	b, err := gojq.Marshal(v)
	if err != nil {
		return faultf("tojson cannot be applied to: %s", typeName(v))
	}
	return string(b)
}

// maxNumberText is the length up to which a text can be a number; the interpreter would compute all of its digits.
const maxNumberText = 4096

func toNumber(_ *meter, in any, _ []any) any {
	s, ok := in.(string)
	if ok && len(s) > maxNumberText {
		return faultf("tonumber cannot be applied to a string that long")
	}
	if i, err := strconv.Atoi(s); ok && err == nil && isExact(i) && s[0] >= '0' && s[0] <= '9' {
		return i
	}
	v := interpreter("tonumber", 0)(in, nil)
	if f, ok := number(v); ok {
		if i, ok := v.(int); !ok || !isExact(i) {
			return f
		}
	}
	return v
}

func fromJSON(m *meter, in any, _ []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("fromjson cannot be applied to: %s", typeName(in))
	}
	if !m.charge(times(len(s), memberCost/2)) {
		return m.exceeded
	}
	v, err := jsonvalue.Decode([]byte(s))
	if err != nil {
		return faultf("fromjson cannot be applied to a string that is no JSON")
	}
	return v
}

func split(m *meter, in any, args []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("split cannot be applied to: %s", typeName(in))
	}
	separator, ok := args[0].(string)
	if !ok {
		return faultf("split wants a string to split at, not %s", typeName(args[0]))
	}
	return splitString(m, s, separator)
}

func splitString(m *meter, s, separator string) any {
	if s == "" {
		return []any{}
	}
	if !m.charge(len(s)) || !m.allocate(times(2*elementCost, strings.Count(s, separator)+1)) {
		return m.exceeded
	}
	words := strings.Split(s, separator)
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	return list
}

func onString(name string, f func(s string) string) native {
	return func(m *meter, in any, _ []any) any {
		s, ok := in.(string)
		if !ok {
			return faultf("%s cannot be applied to: %s", name, typeName(in))
		}
		if !m.charge(2 * len(s)) {
			return m.exceeded
		}
		return f(s)
	}
}

// shiftCase moves a letter of the alphabet that begins at from to the one that begins at to.
func shiftCase(r, from, to rune) rune {
	if r >= from && r < from+26 {
		return r - from + to
	}
	return r
}

func onStrings(name string, f func(s, x string) any) native {
	return func(m *meter, in any, args []any) any {
		s, ok := in.(string)
		if !ok {
			return faultf("%s cannot be applied to: %s", name, typeName(in))
		}
		x, ok := args[0].(string)
		if !ok {
			return faultf("%s wants a string, not %s", name, typeName(args[0]))
		}
		if !m.charge(min(len(s), len(x))) {
			return m.exceeded
		}
		return f(s, x)
	}
}
