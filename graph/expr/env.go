package expr

import (
	"errors"
	"time"
)

// Env is what an evaluation is given beside the state. The zero value is an evaluation without a time that nobody counts
// or abandons.
type Env struct {
	// Now is what the function now returns, to the millisecond; it fails if this is zero. Use the recorded time of the
	// input that is being handled, so that a replay has the same result.
	Now time.Time
	// Spent, if not nil, is increased by what the evaluation cost, in units: about UnitsPerMillisecond of them make a
	// millisecond. The same program over the same state always costs the same.
	Spent *int
	// Budget, if not nil, is what the evaluation may take together with others that are given the same; nil is a new one.
	Budget *Budget
	// Stop, if not nil, is asked every few hundred units. Once it returns true, the evaluation ends with ErrAbandoned.
	Stop func() bool
}

// UnitsPerMillisecond is about how many units of cost an evaluation takes in a millisecond.
const UnitsPerMillisecond = 20_000

// ErrAbandoned is the error of an evaluation that Env.Stop ended. It says nothing about the program, which cannot catch
// it: evaluate it again.
var ErrAbandoned = errors.New("the evaluation was abandoned")
