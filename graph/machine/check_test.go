package machine_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// handle is m.Handle, and proves that m.Check returns the same error before it and changes nothing. What came of the input
// before must have been drained.
func handle(t testing.TB, m *machine.Machine, in machine.Input, now time.Time) error {
	t.Helper()
	before := m.Position()
	want := m.Check(in, now)
	if b := m.Ready(); len(b.Records)+len(b.Effects)+len(b.Abandoned)+len(b.Dropped) > 0 || b.TimersChanged {
		t.Fatalf("checking %T %+v left %+v", in, in, b)
	}
	if after := m.Position(); !bytes.Equal(before, after) {
		t.Fatalf("checking %T %+v changed the position\nfrom %s\nto   %s", in, in, before, after)
	}
	err := m.Handle(in, now)
	if !reflect.DeepEqual(err, want) {
		t.Fatalf("%T %+v: Check returns %v, Handle returns %v", in, in, want, err)
	}
	return err
}

// TestUnknownInput: an input that is a pointer is refused, where it would change nothing and seem to be taken.
func TestUnknownInput(t *testing.T) {
	t.Parallel()
	m := machine.Start(compile(t, backoffDefinition), machine.Config{ExecutionID: "x"}, nil, epoch)
	m.Ready()
	if err := handle(t, m, &machine.Cancel{}, epoch); !errors.Is(err, problem.Internal) {
		t.Errorf("the input was taken: %v", err)
	}
}
