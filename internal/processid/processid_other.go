//go:build !linux && !darwin

package processid

func machine() string { return "" }

func exists(int) bool { return true }

func started(int) (ticks uint64, ended bool) { return 0, false }
