//go:build !linux

package cli

import (
	"strings"
	"testing"
)

// atTerminal answers without a terminal, so that later commands find the run.
func atTerminal(t *testing.T, folder, commands string, lines [][]string) string {
	t.Helper()
	if lines[0][1] == "yes" {
		shell(t, folder, strings.TrimSpace(commands)+` --resume '{"accepted":true}'`)
	} else {
		shell(t, folder, commands)
	}
	return ""
}
