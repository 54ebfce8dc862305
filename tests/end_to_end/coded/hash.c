/* A thread for each connection; every request is hashed: the cores are the limit. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long hash(const char *text, long size) {
    unsigned long sum = 5381;
    for (long round = 0; round < 2000000; round++) sum = sum * 33 + (unsigned char)text[round % size]; // hashes
    return sum;
}

static void *answer(void *connection) {
    char request[4096], body[64], response[256];
    long size;
    while ((size = read((int)(long)connection, request, sizeof request)) > 0) {
        int length = snprintf(body, sizeof body, "%lx", hash(request, size));
        int total = snprintf(response, sizeof response, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
        if (write((int)(long)connection, response, (size_t)total) != total) break;
    }
    close((int)(long)connection);
    return NULL;
}

int main(int count, char **words) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[count - 1]))};
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return 1;
    for (;;) {
        pthread_t thread;
        long connection = accept(listener, NULL, NULL);
        if (connection >= 0 && !pthread_create(&thread, NULL, answer, (void *)connection)) pthread_detach(thread);
    }
}
