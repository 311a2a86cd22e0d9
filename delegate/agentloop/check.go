package agentloop

import (
	"errors"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Check replays the recorded steps of an attempt and reports the first that does not follow from those before it: at is its index, or the
// number of steps if the output of a completed attempt does not follow from them. Texts of another wording are not compared.
func Check(steps []Step, completed bool, output any) (at int, err error) {
	if at, err = checkPieces(steps); err != nil {
		return at, err
	}
	m, at, err := replayed(steps)
	switch {
	case err != nil:
		return at, err
	case !completed:
		return 0, nil
	case m.done == nil || m.done.Failure != nil || len(m.steps) > 0:
		return len(steps), errors.New("the attempt has completed, and its steps lead to no answer")
	case m.wording == wording && !jsonvalue.Equal(m.done.Output, output):
		return len(steps), errors.New("the attempt has completed with another answer than its steps lead to")
	}
	return 0, nil
}
