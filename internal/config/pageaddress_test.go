package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageOrigin: the origin is known only while the page of the file runs, on this machine.
func TestPageOrigin(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{StorePath: filepath.Join(t.TempDir(), "runs.db")}
	check := func(when, want string) {
		t.Helper()
		if got := c.PageOrigin(t.Context()); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("without a file", "")
	a := ReadPageAddress(c.PageFile())
	a.Host, a.Port = a.Name, listener.Addr().(*net.TCPAddr).Port
	a.SetKey(&[32]byte{1})
	write := func(a PageAddress) {
		t.Helper()
		if err := a.Write(c.PageFile()); err != nil {
			t.Fatal(err)
		}
	}
	write(a)
	if !strings.HasSuffix(a.Name, ".localhost") {
		t.Errorf("the name is %q", a.Name)
	}
	check("while it runs", a.Origin())
	foreign := a
	foreign.Host = "example.com"
	write(foreign)
	check("with a host that is not this machine", "")
	stopped := a
	stopped.SetKey(nil)
	write(stopped)
	check("after the end", "")
	write(a)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	check("after a crash", "")
	if err := os.WriteFile(c.PageFile(), []byte(`{"name":"example.com","host":"localhost","port":1,"key":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	check("with a damaged file", "")
	c.Store = Memory
	check("with a store in memory", "")
}
