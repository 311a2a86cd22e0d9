//go:build !linux

package main

import "testing"

func runInAnEmptyRoot(t *testing.T, _ string) {
	t.Skip("only Linux gives a process another root so easily")
}
