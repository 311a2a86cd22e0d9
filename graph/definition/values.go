package definition

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxValues is the number of members and elements that a document may have, aliases written out. A text of some bytes a value takes
// hundreds of bytes a value in memory, so that the size alone bounds little.
const MaxValues = 200_000

// refuseValues is the finding for a document with more than MaxValues.
func refuseValues(at problem.Place) problem.Finding {
	return textFinding(problem.DefinitionTooLarge, at, fmt.Sprintf("the document has more than %d values", MaxValues), textHint("size"))
}

// MaxPrograms is the number of jq programs of a definition, MaxProgramBytes the size of their texts together. A compiled program takes
// some kilobytes.
const (
	MaxPrograms     = 5000
	MaxProgramBytes = 1 << 20
)

// tooManyPrograms rejects the first program beyond the bounds, and takes no notice of others.
func (c *compiler) tooManyPrograms(n *jsonvalue.Node, at *path, v *vertex) (*expr.Program, *problem.Finding) {
	message := fmt.Sprintf("the definition has more than %d jq programs, or more than %d bytes of them", MaxPrograms, MaxProgramBytes)
	f := finding(problem.DefinitionTooLarge, problem.SeverityError, n, at.pointer(), v, message, textHint("size"))
	if !c.refusedPrograms {
		c.refusedPrograms = true
		c.findings = append(c.findings, f)
	}
	return expr.Failing("", problem.New(problem.DefinitionTooLarge, "%s", message)), nil
}

// tooManyValues finds where a text exceeds MaxValues, before anything is made of it. It counts the signs before values: commas and
// brackets, and in YAML the indicators of block style too. A YAML text may hold them in its texts as well; those count.
func tooManyValues(src []byte, yaml bool) (at problem.Place, found bool) {
	n := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == ',' || c == '[' || c == '{':
			n++
		case yaml && (c == '-' || c == ':' || c == '?') && (i+1 == len(src) || src[i+1] <= ' '):
			n++
		case !yaml && c == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		}
		if n > MaxValues {
			before := src[:i]
			return problem.Place{
				Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):]),
			}, true
		}
	}
	return problem.Place{}, false
}
