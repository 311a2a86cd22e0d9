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
	what := ""
	switch invalid.GetFlag().Value.Type() {
	case "int", "int64":
		what = "a whole number"
		if errors.Is(err, strconv.ErrRange) {
			what = "a number that is small enough"
		}
	case "bool":
		what = "true or false"
	case "duration":
		what = "a time with its unit, as in 500ms, 30s or 24h"
	default:
		return problem.New(problem.UsageError, "%v", err)
	}
	return problem.New(problem.UsageError, "--%s: %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), what)
}
