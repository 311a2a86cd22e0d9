//go:build !linux

package childprocess

// HideEnvironment does nothing: it takes Linux to keep the environment of this process from others of the same user.
func HideEnvironment() {}
