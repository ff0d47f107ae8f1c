package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"time"
)

const logPort = 10250

// lines is the log of a pod.
type lines struct {
	sync.Mutex
	kept []line
}

type line struct {
	at   time.Time
	text string
}

func (l *lines) add(text string) {
	l.Lock()
	defer l.Unlock()
	l.kept = append(l.kept, line{time.Now(), text})
}

func (l *lines) since(start time.Time) []line {
	l.Lock()
	defer l.Unlock()
	first := 0
	for first < len(l.kept) && l.kept[first].at.Before(start) {
		first++
	}
	return append([]line(nil), l.kept[first:]...)
}

// serveLogs answers the API server where it expects a kubelet.
func (c *cluster) serveLogs(address string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	routes := http.NewServeMux()
	routes.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", c.answerLogs)
	server := &http.Server{
		Addr: fmt.Sprintf("%s:%d", address, logPort), Handler: routes,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}},
	}
	check(server.ListenAndServeTLS("", ""))
}

func (c *cluster) answerLogs(answer http.ResponseWriter, request *http.Request) {
	pod := c.find(request.PathValue("namespace") + "/" + request.PathValue("pod"))
	if pod == nil {
		http.NotFound(answer, request)
		return
	}
	start, _ := time.Parse(time.RFC3339, request.URL.Query().Get("sinceTime"))
	for _, one := range pod.log.since(start) {
		fmt.Fprintln(answer, one.text)
	}
}
