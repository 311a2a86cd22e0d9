package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// atTerminal runs commands at a terminal, where a person types lines as the program asks, and returns what is left on it.
func atTerminal(t *testing.T, folder, commands string, lines [][]string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	master, slave, shown := openTerminal(t, 120, 40)
	command := inShell(t, folder, commands)
	command.Stdin, command.Stdout, command.Stderr = slave, slave, slave
	go func() {
		for _, line := range lines {
			shown.when(t, ctx, "\n>", func() {})
			if line[1] == "" {
				fmt.Fprint(master, "\x04") // the end of the input
				continue
			}
			fmt.Fprintln(master, line[1])
		}
	}()
	want := "0"
	if said := exitSaid.FindStringSubmatch(commands); said != nil {
		want = said[1]
	}
	err := command.Run()
	if got := fmt.Sprint(command.ProcessState.ExitCode()); got != want {
		t.Errorf("%s\nexit status %s, want %s: %v", commands, got, want, err)
	}
	fmt.Fprintln(slave, "all is shown")
	shown.when(t, ctx, "all is shown", func() {})
	text, _, _ := strings.Cut(shown.text(), "all is shown")
	return asOnThePage(text, folder)
}
