package expr

import (
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

var writtenJSON = written(plainInJSON)

func toJSON(m *meter, in any, _ []any) any {
	if !m.charge(bytesPerUnit*4) || !writtenJSON(m, in, nil) {
		return m.exceeded
	}
	text, err := gojq.Marshal(in)
	if err != nil {
		return faultf("tojson cannot be applied here")
	}
	return string(text)
}

// toString charges for strings too, because the interpreter concatenates them elsewhere without a charge.
func toString(m *meter, in any, args []any) any {
	s, ok := in.(string)
	if !ok {
		return toJSON(m, in, args)
	}
	if !m.allocate(len(s)) {
		return m.exceeded
	}
	return s
}

// maxNumberText is the longest text that can be a number; the interpreter would compute all of its digits.
const maxNumberText = 4096

func toNumber(m *meter, in any, _ []any) any {
	if s, ok := in.(string); ok && len(s) > maxNumberText {
		return faultf("tonumber cannot be applied to a string that long")
	}
	if !m.charge(callCost) {
		return m.exceeded
	}
	v := interpreted(m, "tonumber", in, nil)
	if f, ok := gojq.ToFloat64(v); ok {
		if i, ok := v.(int); !ok || !isExact(i) {
			return f
		}
	}
	return v
}

// split is also the division of strings.
var split = charged("split", pieces)

func fromJSON(m *meter, in any, _ []any) any {
	s, ok := in.(string)
	if !ok {
		return faultf("fromjson cannot be applied to: %s", typeName(in))
	}
	if !m.charge(times(len(s), scalarCost)) || !m.allocate(decodedSize(s)) {
		return m.exceeded
	}
	v, losses, err := jsonvalue.DecodeExact([]byte(s))
	if err != nil {
		return faultf("fromjson cannot be applied to invalid JSON")
	}
	for _, loss := range losses {
		if loss.Kind == "number" { // integers are rounded, as everywhere in programs
			return faultf("fromjson cannot be applied to a number that is too large")
		}
	}
	return v
}

// decodedSize is about the memory of the value of a JSON text.
func decodedSize(text string) int {
	return len(text) + 4*elementCost*strings.Count(text, "[") + (objectCost+memberCost)*strings.Count(text, "{") +
		memberCost*strings.Count(text, ",")
}
