//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns the columns and lines of a terminal; ok is false for another file.
func terminalSize(f *os.File) (columns, lines int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}
