package cli

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// usualPager shows what does not fit the screen; it leaves the text there when it ends, and shows colours.
const usualPager = "less -FRX"

// render returns Markdown as it is, or for the terminal that stdout is.
func (a *app) render(markdown string) string {
	width := a.columns()
	if width == 0 {
		return markdown
	}
	return rendered(markdown, min(max(width, smallestColumns), helpColumns), newPalette(true, a.env))
}

// page writes a text for people. If stdout is a terminal and the text is longer, $PAGER shows it, or less; an empty PAGER and cat turn that off.
func (a *app) page(text string) error {
	var rows int
	ok := a.terminalOut != nil
	if ok {
		_, rows, ok = terminalSize(a.terminalOut)
	}
	command := strings.Fields(a.pager())
	if !ok || strings.Count(text, "\n") < rows || len(command) == 0 || command[0] == "cat" {
		_, err := io.WriteString(a.human, text)
		return err
	}
	var safe strings.Builder
	if _, err := (&plainWriter{out: &safe}).Write([]byte(text)); err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...) // it handles the interrupts of the terminal
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(safe.String()), a.terminalOut, os.Stderr
	if cmd.Start() != nil { // it is not installed
		_, err := io.WriteString(a.human, text)
		return err
	}
	_ = cmd.Wait() // a person may end it at any time
	return nil
}

// pager returns the command of the pager, "" without one.
func (a *app) pager() string {
	for _, entry := range a.env.Variables {
		if value, ok := strings.CutPrefix(entry, "PAGER="); ok {
			return value
		}
	}
	if runtime.GOOS == "windows" || variable(a.env, "TERM") == "dumb" {
		return ""
	}
	return usualPager
}
