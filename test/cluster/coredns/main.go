// CoreDNS with only the plugins that the test cluster's Corefile names, so that it builds in seconds.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// A query passes the plugins in this order, so that `template` answers what none of the others knows.
	dnsserver.Directives = []string{"bind", "ready", "errors", "log", "hosts", "kubernetes", "template"}
	coremain.Run()
}
