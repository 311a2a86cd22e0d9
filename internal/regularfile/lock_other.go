//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package regularfile

import "os"

// lockFile locks nothing: a change by another process is still found right before the file is replaced.
func lockFile(*os.File) (locked bool, err error) { return true, nil }

func busy(error) bool { return false }
