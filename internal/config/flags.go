package config

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// FlagError is the USAGE_ERROR for arguments that a set of flags cannot parse. For an invalid number or time it describes a valid one.
func FlagError(err error) *problem.Error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return problem.New(problem.UsageError, "%v", err)
	}
	expected := ""
	switch invalid.GetFlag().Value.Type() {
	case "int", "int64":
		expected = "a whole number"
		if errors.Is(err, strconv.ErrRange) {
			expected = "a smaller number"
		}
	case "bool":
		expected = "true or false"
	case "duration":
		expected = "a time with its unit, as in 500ms, 30s or 24h"
	default:
		return problem.New(problem.UsageError, "%v", err)
	}
	return problem.New(problem.UsageError, "invalid value %q for --%s: expected %s", invalid.GetValue(), invalid.GetFlag().Name, expected)
}
