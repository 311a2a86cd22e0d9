package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// serverVariable names the program of the server for tests, which "make temporal-server" builds.
const serverVariable = "WORKFLOW_ENGINE_TEST_TEMPORAL"

// server starts a server for tests, and returns its address and namespace.
func server(t *testing.T) (address, namespace string) {
	t.Helper()
	path := os.Getenv(serverVariable)
	if path == "" {
		t.Skipf("no Temporal server: run make temporal-server, or set %s to the program graph/temporal/internal/devserver", serverVariable)
	}
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it stops at the end of its input
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscanln(bufio.NewReader(out), &address, &namespace); err != nil {
		t.Fatal(err)
	}
	return address, namespace
}

// certificate makes a certificate for 127.0.0.1, and returns the files of it and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs)
}

// encrypted returns an address at which a server is reached with TLS by clients with a certificate.
func encrypted(t *testing.T, address, cert, key, client string) string {
	t.Helper()
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(text)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				_ = near.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	return l.Addr().String()
}

// TestOverTLS: the commands reach a service with TLS and a client's certificate, and no service whose certificate or client they do not trust.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	address, namespace := server(t)
	cert, key := certificate(t)
	own, ownKey := certificate(t)
	other, otherKey := certificate(t)
	at := encrypted(t, address, cert, key, own)
	env := []string{"TEMPORAL_ADDRESS=" + at, "TEMPORAL_NAMESPACE=" + namespace}
	list := func(authority, own, ownKey string) (int, string) {
		args := []string{"list", "--temporal-tls-ca-file", authority}
		if own != "" {
			args = append(args, "--temporal-tls-cert-file", own, "--temporal-tls-key-file", ownKey)
		}
		status, _, stderr := call(t, env, args...)
		return status, stderr
	}
	if status, stderr := list(cert, own, ownKey); status != 0 {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for name, files := range map[string][3]string{"another authority": {other, own, ownKey}, "no certificate": {cert, "", ""}, "another client": {cert, other, otherKey}} {
		if status, stderr := list(files[0], files[1], files[2]); status != 1 || !strings.Contains(stderr, "STORE_UNAVAILABLE") {
			t.Errorf("%s: status %d\n%s", name, status, stderr)
		}
	}
	if status, _, stderr := call(t, env, "list"); status != 1 || !strings.Contains(stderr, "STORE_UNAVAILABLE") {
		t.Errorf("without TLS: status %d\n%s", status, stderr)
	}
}

const askText = `{"document":{"schema":"urn:test","name":"ask","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
	`{"id":"ask","type":"interrupt","config":{"prompt":"Well?","resume_schema":{"type":"object"}}},{"id":"e","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"ask"},{"source":"ask","target":"e"}]}`

// TestARunMovesWithTheCommands: out of a database, into the service and back, with each command twice.
func TestARunMovesWithTheCommands(t *testing.T) {
	t.Parallel()
	address, namespace := server(t)
	env := []string{"TEMPORAL_ADDRESS=" + address, "TEMPORAL_NAMESPACE=" + namespace}
	worker := command(t, "worker", "--profile", "demo")
	worker.Env = append(worker.Env, env...)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Process.Kill(); _ = worker.Wait() })
	must := func(args ...string) string {
		t.Helper()
		status, stdout, stderr := call(t, env, args...)
		if status != 0 {
			t.Fatalf("%v: status %d\n%s", args, status, stderr)
		}
		return stdout
	}
	runner := func() *graph.Runner {
		return enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{})))
	}
	from, to := runner(), runner()
	if _, err := from.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, askText), Title: "One"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	var text bytes.Buffer
	if err := from.Export(t.Context(), "r", graph.ExportOptions{Move: true, Now: time.Now()}, &text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := []string{"--temporal-archive", filepath.Join(t.TempDir(), "archive")}
	for n, want := range []string{"imported run r (interrupted)", "unchanged: run r (interrupted)"} {
		if got := must(append([]string{"db", "import", file}, archive...)...); !strings.HasPrefix(got, want) {
			t.Errorf("import %d: %s", n+1, got)
		}
	}
	if got := must("status", "r"); !strings.Contains(got, "Well?") || !strings.Contains(got, "One") {
		t.Errorf("status\n%s", got)
	}
	for range 2 {
		back := must(append([]string{"db", "export", "r", "--move"}, archive...)...)
		if _, err := to.Import(t.Context(), strings.NewReader(back)); err != nil {
			t.Fatal(err)
		}
	}
	run, err := to.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"well": true}})
	if err != nil || run.Status != machine.Completed || run.FinalState["well"] != true {
		t.Errorf("%+v %v", run, err)
	}
	if status, _, stderr := call(t, env, "resume", "r", "--payload", "{}"); status != 1 || !strings.Contains(stderr, "the run is cancelled") {
		t.Errorf("an answer after the move: status %d\n%s", status, stderr)
	}
}
