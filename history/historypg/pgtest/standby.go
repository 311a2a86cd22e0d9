package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// standbyName is the name that a primary knows its standby by.
const standbyName = "standby"

// Standby starts a second server, which follows this one by streaming replication. Promote makes it writable.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp(folder(), "pg")
	if err != nil {
		t.Fatal(err)
	}
	standby := &Server{bin: s.bin, dir: dir, flags: s.flags, url: "host=" + dir + " user=test dbname=postgres"}
	t.Cleanup(standby.end)
	if err := standby.becomeUser(); err != nil {
		t.Fatal(err)
	}
	copied := exec.Command(filepath.Join(s.bin, "pg_basebackup"), "-d", "host="+s.dir+" user=test application_name="+standbyName,
		"-D", filepath.Join(dir, "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	copied.Dir, copied.SysProcAttr = dir, standby.own
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	if err := standby.launch(); err != nil {
		t.Fatal(err)
	}
	return standby
}

// Synchronize makes each commit of the server wait for its standby.
func (s *Server) Synchronize(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+standbyName+"'")
	s.Exec(t, "SELECT pg_reload_conf()")
}

// Promote makes a standby writable.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "SELECT pg_promote()")
}

// Failover returns an address with this server and a second one; the writable one is used.
func (s *Server) Failover(second *Server) string {
	return "host=" + s.dir + "," + second.dir + " user=test dbname=postgres target_session_attrs=read-write"
}
