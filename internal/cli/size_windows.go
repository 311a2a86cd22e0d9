package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalSize returns the columns and lines of a console that understands escape sequences; ok is false for another file.
func terminalSize(f *os.File) (columns, lines int, ok bool) {
	console := windows.Handle(f.Fd())
	var mode uint32
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleMode(console, &mode) != nil || windows.GetConsoleScreenBufferInfo(console, &info) != nil {
		return 0, 0, false
	}
	if windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return 0, 0, false
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, true
}
