// Asks for a URL over one protocol, several times on what connections Go keeps.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	url, root, protocol := os.Args[1], os.Args[2], os.Args[3]
	pem, err := os.ReadFile(root)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		panic("no root")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	transport.ForceAttemptHTTP2 = protocol == "HTTP/2.0"
	client := &http.Client{Transport: transport}
	for range 10 {
		response, err := client.Get(url)
		if err != nil {
			panic(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 200 || response.Proto != protocol {
			panic(fmt.Sprint(response.Proto, response.Status, err))
		}
		fmt.Print(string(body))
	}
}
