//go:build !unix

package pgtest

import "io"

func (s *Server) becomeUser() error { return errMissing }

type watching struct{ io.Closer }

func (w *watching) dismiss() error { return nil }

func watcher(int, string) (io.Closer, error) { return nil, errMissing }

func folder() string { return "" }
