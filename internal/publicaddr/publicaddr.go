// Package publicaddr keeps connections to public addresses: what an address in somebody else's hands leads to is not to be reached from
// where the engine stands.
package publicaddr

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Refusal is why an address is not dialled.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Dialer returns a dialer that connects to no loopback, private, link-local or otherwise special address, unless it is in one of the
// networks given. That is checked for the very address that is dialled, after names were resolved, so that a name cannot mean another one by
// then. setting names what holds the networks, for the text of a *Refusal.
func Dialer(timeout time.Duration, private []netip.Prefix, setting string) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Control: control(private, setting)}
}

func control(private []netip.Prefix, setting string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return &Refusal{fmt.Sprintf("the address %s is not understood", address)}
		}
		ip := at.Addr().Unmap().WithZone("")
		if !special(ip) {
			return nil
		}
		for _, network := range private {
			if network.Contains(ip) {
				return nil
			}
		}
		return &Refusal{fmt.Sprintf("%s is not a public address (\"privateNetworks\" in %s)", ip, setting)}
	}
}

// Network reads a network, as in 10.0.0.0/8, or a single address.
func Network(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// reserved are special networks that netip has no word for, and those within global whose addresses stand for others.
var reserved = func() (networks []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}()

// global is all of IPv6 that public addresses are given from. Outside of it are the forms that hold an IPv4 address
// (RFC 4291, 6052, 7915), among others.
var global = netip.MustParsePrefix("2000::/3")

// special reports whether an address is anything but a public one.
func special(ip netip.Addr) bool {
	if ip.Is6() && !global.Contains(ip) {
		return true
	}
	if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return true
	}
	for _, network := range reserved {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}
