package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// addressFile is the file beside a database by which other processes find the pages that serve it. Only the user can read it, because its keys
// let browsers in. Each process adds the address of its page and removes it at its end, so that several of them do not disturb each other.
type addressFile struct {
	Home
	// Pages has the newest last, and may have those of processes that were killed.
	Pages []Address `json:"pages,omitempty"`
}

// Home is the address at which the command ui serves the page of a database, so that links stay valid from one process to the next.
type Home struct {
	// Name is a random host name below localhost. No other server of the machine has it, so browsers send the cookie to this server alone.
	Name string `json:"name,omitempty"`
	// Port is the last one; 0 before the first start.
	Port int `json:"port,omitempty"`
}

// Address is where a page is served.
type Address struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	// Proof is by which the page is recognized: another server may have its port after it was killed.
	Proof Key `json:"proof"`
	// Key makes links that let browsers in; zero for a page that tokens open.
	Key Key `json:"key,omitzero"`
	// UI reports that the command ui serves the page, which is then for one person.
	UI bool `json:"ui,omitempty"`
	// ReadOnly reports that the page changes no runs.
	ReadOnly bool `json:"readOnly,omitempty"`
}

const (
	// maxAddressFile limits the file, in bytes, and maxAddresses its addresses: another one removes the oldest.
	maxAddressFile = 16 << 10
	maxAddresses   = 16
	// alivePatience limits the wait for the answer of a running page.
	alivePatience = time.Second
	// alivePath is the address that shows that a page runs.
	alivePath = "/alive"
	// maxNonce limits the text that a page signs for that, in bytes.
	maxNonce = 64
)

// MarshalText returns the key in base64.
func (k Key) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, k[:]), nil
}

// UnmarshalText reads a key in base64.
func (k *Key) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil || len(raw) != len(k) {
		return errors.New("invalid key")
	}
	copy(k[:], raw)
	return nil
}

// Address returns the address of a page with these options that listens at an address. Key must be set.
func (o *Options) Address(listens net.Addr) Address {
	a := Address{Proof: o.Key.proof(), UI: o.Access == nil, ReadOnly: o.ReadOnly}
	if !o.hasTokens() {
		a.Key = o.Key
	}
	if o.Access == nil {
		if origin, err := url.Parse(o.Origin); err == nil {
			a.Host = origin.Hostname()
			a.Port, _ = strconv.Atoi(origin.Port())
		}
		return a
	}
	at, err := netip.ParseAddrPort(listens.String())
	if err != nil {
		return a
	}
	ip := at.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	a.Host, a.Port = ip.String(), int(at.Port())
	if named := slices.IndexFunc(o.Access.Hosts, IsLocalHost); named >= 0 && ip.Is4() && ip.IsLoopback() {
		a.Host = o.Access.Hosts[named]
	}
	return a
}

// Origin returns the scheme, host and port of the page.
func (a Address) Origin() string {
	return "http://" + net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// ReadHome returns the home in a file. Without one, or with one that cannot be used, it has a new name.
func ReadHome(file string) Home {
	f, _ := readAddresses(file)
	if f.Name == "" {
		name := make([]byte, 10)
		_, _ = rand.Read(name) // never fails
		f.Name = "w" + strings.ToLower(base32.StdEncoding.EncodeToString(name)) + ".localhost"
	}
	return f.Home
}

// readAddresses reads a file, and returns its text; nil without one. A file that cannot be used counts as empty.
func readAddresses(file string) (f addressFile, text []byte) {
	text, err := regularfile.Read(file, maxAddressFile)
	if err != nil || json.Unmarshal(text, &f) != nil {
		return addressFile{}, text
	}
	if !IsLocalHost(f.Name) {
		f.Home = Home{}
	}
	return f, text
}

// Announce adds the address of a page that listens to the file beside its database, until withdraw is called. home, unless nil, replaces
// the one of the file, but not while another page of the command ui runs. file may be "", for a database in memory: nothing is written then.
func Announce(file string, a Address, home *Home) (withdraw func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	// A database on a server has its file in the user's data directory, which need not exist yet.
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return func() {}, err
	}
	was, _ := readAddresses(file)
	dead, lives := map[Key]bool{}, map[Key]bool{}
	for _, old := range was.Pages {
		dead[old.Proof] = old.refused()
		lives[old.Proof] = home != nil && old.UI && old.runs(context.Background())
	}
	err = changeAddresses(file, func(f *addressFile) {
		taken := slices.ContainsFunc(f.Pages, func(old Address) bool { return lives[old.Proof] })
		if home != nil && (!taken || f.Name == "") {
			f.Home = *home
		}
		f.Pages = slices.DeleteFunc(f.Pages, func(old Address) bool {
			return dead[old.Proof] || old.Host == a.Host && old.Port == a.Port // nothing else listens there any more
		})
		f.Pages = append(f.Pages, a)
		f.Pages = f.Pages[max(0, len(f.Pages)-maxAddresses):]
	})
	return func() {
		_ = changeAddresses(file, func(f *addressFile) { // what stays is recognized as dead
			f.Pages = slices.DeleteFunc(f.Pages, func(old Address) bool { return old.Proof == a.Proof })
		})
	}, err
}

// changeAddresses changes a file in one step.
func changeAddresses(file string, change func(*addressFile)) error {
	unlock, err := regularfile.Lock(file)
	if err != nil {
		return err
	}
	defer unlock()
	was, err := regularfile.Read(file, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, _ := readAddresses(file)
	change(&f)
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	replacement := regularfile.Replacement{Name: file, Was: was, Text: append(text, '\n'), Mode: 0o600}
	return replacement.ReplaceLocked()
}

// Running returns the pages of a file that run now, the one that started last first. Each is asked when its turn comes.
func Running(ctx context.Context, file string) iter.Seq[Address] {
	return func(yield func(Address) bool) {
		if file == "" {
			return
		}
		f, _ := readAddresses(file)
		for _, a := range slices.Backward(f.Pages) {
			if a.runs(ctx) && !yield(a) {
				return
			}
		}
	}
}

// RunningOrigin returns the origin of the page of a file that started last, "" if no page runs.
func RunningOrigin(ctx context.Context, file string) string {
	for a := range Running(ctx, file) {
		return a.Origin()
	}
	return ""
}

// dial connects to the page. An address that is not of this machine is an error.
func (a Address) dial(ctx context.Context) (net.Conn, error) {
	at := "127.0.0.1"
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		own, _ := net.InterfaceAddrs()
		if at = a.Host; !ip.IsLoopback() && !slices.ContainsFunc(own, func(own net.Addr) bool {
			prefix, err := netip.ParsePrefix(own.String())
			return err == nil && prefix.Addr() == ip
		}) {
			return nil, fmt.Errorf("%s is not an address of this machine", ip)
		}
	} else if !IsLocalHost(a.Host) {
		return nil, fmt.Errorf("%s is not a name of this machine", a.Host)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort(at, strconv.Itoa(a.Port)))
}

// refused reports whether nothing listens at the address.
func (a Address) refused() bool {
	ctx, cancel := context.WithTimeout(context.Background(), alivePatience)
	defer cancel()
	conn, err := a.dial(ctx)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// runs reports whether the page itself answers at its address.
func (a Address) runs(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, alivePatience)
	defer cancel()
	nonce := rand.Text()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Origin()+alivePath+"?n="+nonce, nil)
	if err != nil {
		return false
	}
	client := http.Client{
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) }, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	return err == nil && res.StatusCode == http.StatusOK && hmac.Equal(text, a.Proof.alive(nonce))
}

// proof returns the key that shows that a page runs.
func (k *Key) proof() (proof Key) {
	copy(proof[:], k.sign("proof"))
	return proof
}

// alive returns the answer of a page that runs to a nonce.
func (k *Key) alive(nonce string) []byte {
	return base64.RawURLEncoding.AppendEncode(nil, k.sign("alive", nonce))
}

// showAlive answers a process that asks whether the address in the file is this page.
func (s *Server) showAlive(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get("n")
	if nonce == "" || len(nonce) > maxNonce {
		s.refuse(w, r, http.StatusBadRequest, "invalid nonce")
		return
	}
	proof := s.o.Key.proof()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(proof.alive(nonce))
}

// IsLocalHost reports whether a host name always leads to this machine: localhost, a name below it, 127.0.0.1 or ::1.
func IsLocalHost(host string) bool {
	if host == "127.0.0.1" || host == "::1" || host == "localhost" {
		return true
	}
	name, ok := strings.CutSuffix(host, ".localhost")
	return ok && name != "" && len(name) <= 63 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	}) && name[0] != '-' && name[len(name)-1] != '-'
}
