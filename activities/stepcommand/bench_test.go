package stepcommand_test

import (
	"os/exec"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
)

// BenchmarkExecute is what it costs to start a program that does nothing, and to see it end.
func BenchmarkExecute(b *testing.B) {
	program, err := exec.LookPath("true")
	if err != nil {
		b.Skipf("there is no program that does nothing: %v", err)
	}
	commands, err := stepcommand.New(stepcommand.Config{Commands: map[string]stepcommand.Command{"urn:x": {Command: program}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = commands.Close() })
	for b.Loop() {
		if _, err := commands.Execute(b.Context(), step()); err != nil {
			b.Fatal(err)
		}
	}
}
