// HashiCorp's own Consul, built from its published modules: a peer for `weir discover consul`.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/consul/command"
	"github.com/hashicorp/consul/command/cli"
	mcli "github.com/mitchellh/cli"
)

func main() {
	ui := &cli.BasicUI{BasicUi: mcli.BasicUi{Writer: os.Stdout, ErrorWriter: os.Stderr}}
	consul := mcli.NewCLI("consul", "")
	consul.Args = os.Args[1:]
	consul.Commands = command.RegisteredCommands(ui)
	code, err := consul.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
